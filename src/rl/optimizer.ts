/** What a trainer's `step` accepts, and the AdamW settings of either trainer. */

/** Settings of one optimizer step (AdamW). */
export type StepOptions = {
  readonly learningRate: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.99 for an adapter, 0.95 for all weights. */
  readonly beta2?: number;
  /** Default 1e-8. */
  readonly eps?: number;
  /** Default 0.1. */
  readonly weightDecay?: number;
  /** The gradient is scaled down to this norm; 0: never. Default 0.1 for an adapter, 1 for all weights. */
  readonly maxGradNorm?: number;
};

type AdamW = Required<Omit<StepOptions, 'learningRate'>>;

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
