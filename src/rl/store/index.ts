/**
 * Models, checkpoints, jobs and runs <-> files in the home folder.
 *
 * Reading order: `store` (all calls), `home` (folder, one writer), `model-records`, `checkpoints`, `jobs`,
 * `runs` with `run-log` (metrics, trajectories) and `tracker`, then the `*-resource` files, which face the caller.
 */
export { checkpointsResource, type LocalCheckpointsResource } from './checkpoints-resource.ts';
export type { OpenJob } from './jobs.ts';
export { requireKnownSteps } from './log-metrics.ts';
export { type LocalModelsResource, modelsResource } from './models-resource.ts';
export { type OpenStore, openStore } from './open-store.ts';
export type { LoggedException, MetricRecord, TrajectoryFile, TrajectoryRecord } from './run-log.ts';
export type { LoggedTrajectory } from './runs.ts';
export { type RunsResource, runsResource } from './runs-resource.ts';
export type { StepRunRecord } from './step-runs.ts';
export type { Store, UsedCheckpoint } from './store.ts';
