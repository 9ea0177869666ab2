/// <reference types="node" preserve="true" />
/**
 * `onpolicy/rl`: the stages of training as functions, for custom training loops.
 * @module rl
 */

export type { AdapterWeights, LoraFactors, ModelFacts } from '../engine/native/index.ts';
export type {
  AdvantageOptions,
  AgentBaselineOptions,
  AgentTrajectory,
  ForwardOptions,
  FullTrainerOptions,
  PackedRow,
  PolicyLossInputs,
  PreferenceLossInputs,
  ScoredTrajectory,
  StepOptions,
  TrainerOptions,
} from '../protocol/index.ts';
export { computeAdvantages, type TrajectoryAdvantage } from './advantages.ts';
export { AgentBaselines, hierarchicalGroups } from './agents.ts';
export { algorithms } from './algorithms.ts';
export { policyLoss, policyLosses, preferenceLoss } from './caller-losses.ts';
export type { Column } from './columns.ts';
export {
  type DecisionComparison,
  type DecisionExample,
  type DecisionMeasures,
  type DecisionReport,
  type LearnDecisionsEvent,
  type LearnDecisionsOptions,
  type LearnedDecisions,
  learnDecisions,
  type ReliabilityBin,
  type RightAnswer,
} from './decisions/index.ts';
export { distillationAdvantages } from './distillation.ts';
export { type FullParameter, type FullTrainer, openFullTrainer } from './full-trainer.ts';
export type { PolicyLoss } from './loss.ts';
export { defaultRowLength, type Packing, packRows, type TrainingRow, type WeightedSequence } from './pack.ts';
export {
  type DistillEvent,
  type DistillOptions,
  type DistillResult,
  type DistillTask,
  type DistillTeacher,
  distill,
  type EnvironmentOptions,
  type Evaluation,
  environmentRollout,
  type GatheredGroup,
  type GatherOptions,
  type GatherProgress,
  gatherTrajectoryGroups,
  type JudgeOptions,
  judge,
  type LoopContext,
  type LoopEvent,
  type LoopRollout,
  type Observation,
  progressBar,
  type Rollout,
  type RolloutContext,
  rewards,
  type SamplerService,
  type TrainableService,
  type TrainLoopOptions,
  type TrainLoopResult,
  trainLoop,
} from './rollout/index.ts';
export type {
  AdvantageEstimator,
  ExperimentalConfig,
  ImportanceSamplingLevel,
  PreferenceLoss,
  TrainingSettings,
} from './settings.ts';
export {
  type ChatTokenizer,
  type SequenceExperts,
  type TokenOptions,
  type TokenSequence,
  trajectoryTokens,
} from './tokens.ts';
export { openTrainer, type Trainer, type TrainerInfo, type TrainerState } from './trainer.ts';
export type {
  History,
  MessagesAndChoices,
  Trajectory,
  TrajectoryChoice,
  TrajectoryGroup,
  TrajectoryMessage,
} from './trajectory.ts';
