/** A checked request -> the native sampler of each choice, hooks on its logits, log-probabilities, beams. */
export { BeamSearch, type Expansion, type Hypothesis, type Path, stepsOf } from './beam-search.ts';
export type { LogitsHook } from './logits-hook.ts';
export {
  createLogitsHooks,
  type LogitsProcessorFactory,
  type LogitsProcessorOptions,
  registerLogitsProcessor,
} from './logits-processors.ts';
export { toLogprob, toTokenLogprob } from './logprobs.ts';
export { createSamplers, forkSampler, type SamplingDefaults } from './plan.ts';
export { createPromptScores, type PromptScores, requireTopLogprobsFit } from './prompt-scores.ts';
