/** Settings of a runtime that all its models share, and the limits of one of them. */
import type { Complete, ModelOptions, ServingLimits } from '../protocol/index.ts';

type Options = Complete['RuntimeOptions'];

/** The same with what the loading of models reports to. */
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
  /** Gets lines about what takes long. */
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

/** The limits of a model: its own, else those of the runtime. */
export function limitsOf(own: ModelOptions, serving: ServingOptions): Limits {
  return Object.fromEntries(LIMITS.map((name) => [name, own[name] ?? serving[name]])) as Limits;
}

/** Which kernels run a model's matmuls, also by former names of the option and of `auto`. */
export function kernelsOf({ kernels, products }: ModelOptions): 'auto' | 'plain' {
  return (kernels ?? products) === 'plain' ? 'plain' : 'auto';
}
