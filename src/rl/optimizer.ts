/** Options of a trainer's `step` -> checked AdamW settings, with the defaults of each kind of trainer. */
import type { NativeStep } from '../engine/native/index.ts';
import { checkArguments, type StepOptions } from '../protocol/index.ts';

/** Settings of AdamW except the learning rate. */
export type AdamW = Omit<NativeStep, 'learningRate'>;

/** Defaults for an adapter: the gradients of policy losses are noisy, so they are clipped early. */
export const ADAPTER_ADAMW: AdamW = {
  beta1: 0.9,
  beta2: 0.99,
  eps: 1e-8,
  weightDecay: 0.1,
  maxGradNorm: 0.1,
};

/** Defaults for training all weights: the usual ones for pretraining with cross-entropy. */
export const FULL_ADAMW: AdamW = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };

/** Checks the options of a step. Absent or undefined ones get their defaults. */
export function stepOptions(given: StepOptions, defaults: AdamW): NativeStep {
  const { learningRate, ...others } = checkArguments('StepOptions', given);
  const set = Object.entries(others).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(set), learningRate };
}
