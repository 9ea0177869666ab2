/** Any client's requests -> recorded trajectories -> groups of attempts, scored -> a loop that trains on them. */
// Reading order: recorder (one rollout), gather (many), rewards and judge (what they are worth), train-loop
export {
  type DistillEvent,
  type DistillOptions,
  type DistillResult,
  type DistillTask,
  type DistillTeacher,
  distill,
} from './distill.ts';
export { type EnvironmentOptions, environmentRollout, type Observation } from './environment.ts';
export {
  type GatheredGroup,
  type GatherOptions,
  type GatherProgress,
  gatherTrajectoryGroups,
  type Rollout,
  type RolloutContext,
} from './gather.ts';
export { type JudgeOptions, judge } from './judge.ts';
export type {
  Evaluation,
  LoopContext,
  LoopEvent,
  LoopRollout,
  SamplerService,
  TrainableService,
  TrainLoopOptions,
} from './loop-options.ts';
export { progressBar } from './progress-bar.ts';
export { type Recorder, type RecordingEnd, record } from './recorder.ts';
export * as rewards from './rewards.ts';
export { type TrainLoopResult, trainLoop } from './train-loop.ts';
