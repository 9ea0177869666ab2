/** Corrected decisions -> a checkpoint that was measured on decisions that it did not learn from. */
export type { DecisionMeasures, ReliabilityBin } from './calibration.ts';
export type { DecisionExample, RightAnswer } from './examples.ts';
export {
  type DecisionComparison,
  type DecisionReport,
  type LearnDecisionsEvent,
  type LearnDecisionsOptions,
  type LearnedDecisions,
  learnDecisions,
} from './learn-decisions.ts';
