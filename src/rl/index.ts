/** Trajectories with rewards -> numbers on tokens -> a trained adapter, checkpoint by checkpoint. */

export { type AdapterShape, readAdapterShape } from './adapter-shape.ts';
export { CHECKPOINT_FILES } from './checkpoint-files.ts';
export {
  checkFiles,
  FACTS_FILE,
  factsIn,
  listSteps,
  nextStep,
  type StepFacts,
  stepFolder,
  writeStep,
} from './checkpoint-step.ts';
export { type DataPlan, planData } from './datum.ts';
export { type LossPool, openLossPool } from './loss-pool.ts';
export {
  Averages,
  addGroupMetrics,
  addOwnMetrics,
  type Metrics,
  policyStepOf,
  StepAverages,
} from './metrics.ts';
export { onTrainer } from './policy-steps.ts';
export * from './public.ts';
export { acceptsTexts, completeSettings, type TrainingSettings } from './settings.ts';
export type { SftExample, SftRequest } from './sft.ts';
export { addGradient, type ForwardScores, type JobEvent, stepIfFinite } from './steps.ts';
export { Tallies } from './tally.ts';
export { diverged, sft, type TrainResult, type TrainTools, train } from './train.ts';
export { trainedModules, trainingBytes } from './trainer.ts';
export { conversationsOf, idsFromLogprobs, isChoice, type TrajectoryChoice } from './trajectory.ts';
