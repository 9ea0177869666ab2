/** What a trainer's `step` is given -> checked AdamW settings, with the defaults of either trainer. */
import type { NativeStep } from '../native/index.ts';
import { checkArguments, type StepOptions } from '../protocol/index.ts';

/** Settings of AdamW but the learning rate. */
export type AdamW = Omit<NativeStep, 'learningRate'>;

/** Of an adapter: the gradients of policy losses are noisy, so they are clipped early. */
export const ADAPTER_ADAMW: AdamW = {
  beta1: 0.9,
  beta2: 0.99,
  eps: 1e-8,
  weightDecay: 0.1,
  maxGradNorm: 0.1,
};

/** Of all weights: usual for pretraining with cross-entropy. */
export const FULL_ADAMW: AdamW = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };

/** Checks the options of a step; what is absent or undefined has its default. */
export function stepOptions(given: StepOptions, defaults: AdamW): NativeStep {
  const { learningRate, ...others } = checkArguments('StepOptions', given);
  const set = Object.entries(others).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(set), learningRate };
}
