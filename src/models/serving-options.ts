/** A runtime's options -> the settings that all its models share, and the limits of one model. */
import type { Complete, ModelOptions, ServingLimits } from '../protocol/index.ts';

type Options = Complete['RuntimeOptions'];

/** Settings of the runtime for its models, and receivers of the loader's reports. */
export type ServingOptions = Pick<
  Options,
  | keyof ServingLimits
  | 'gpu'
  | 'home'
  | 'scheduling'
  | 'prefixCache'
  | 'deterministic'
  | 'speculation'
  | 'hub'
  | 'onProgress'
  | 'log'
  | 'memory'
> & {
  readonly media: Complete['MediaOptions'];
  /** Receives lines about work that takes long. */
  readonly notice: (line: string) => void;
};

type Limits = Pick<Options, keyof ServingLimits>;

const LIMITS: readonly (keyof ServingLimits)[] = [
  'contextSize',
  'kvTokens',
  'maxSequences',
  'maxWaiting',
  'maxBatchTokens',
  'diskCacheBytes',
  'threads',
];

/** Returns the limits of a model: its own, else those of the runtime. */
export function limitsOf(own: ModelOptions, serving: ServingOptions): Limits {
  return Object.fromEntries(LIMITS.map((name) => [name, own[name] ?? serving[name]])) as Limits;
}

/** Returns the kernels for a model's matmuls. Accepts former names of the option and of `auto`, too. */
export function kernelsOf({ kernels, products }: ModelOptions): 'auto' | 'plain' {
  return (kernels ?? products) === 'plain' ? 'plain' : 'auto';
}
