/** What a model needs of memory -> errors with the figures. */
import type { MemoryEstimate } from '../backends/index.ts';
import { mib } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

/** Bytes that a model takes, and where. */
export type MemoryNeed = Omit<MemoryEstimate, 'caches'> & {
  /** Of these, what the processor's memory must have free: mapped weights are pages that the system can drop. */
  readonly host: number;
  /** Of these, what lies on GPUs. */
  readonly device: number;
};

/** Bytes that are free: of the processor, and of all GPUs. */
export type FreeBytes = { readonly host: number; readonly device: number };

/** Weights, cache, buffers and checkpoints together. */
export function totalBytes({ weights, cache, compute, checkpoints }: MemoryNeed): number {
  return weights + cache + compute + checkpoints;
}

/** What models may take together, and what those take that stay. */
export type OverBudget = { readonly budget: number; readonly held: number };

/** The error of a model that does not fit, by its figures. `over`: null when the system itself has too little. */
export function memoryError(
  name: string,
  field: string,
  need: MemoryNeed,
  free: FreeBytes,
  over: OverBudget | null,
): OnpolicyError {
  const { weights, cache, compute, checkpoints, host, device } = need;
  const lacks = device > free.device ? 'device' : 'host';
  const limit =
    over !== null
      ? overText(over)
      : lacks === 'device'
        ? `${mib(device)} of it on GPUs, which have ${mib(free.device)} free`
        : `${mib(host)} of it must be free, and ${mib(free.host)} are`;
  const msg =
    `${name} takes ${mib(totalBytes(need))} (weights ${mib(weights)}, cache ${mib(cache)}, compute ${mib(compute)}${checkpoints > 0 ? `, checkpoints ${mib(checkpoints)}` : ''}); ${limit}. ` +
    'A smaller kvTokens, contextSize or maxSequences, or a quantized cacheType takes less';
  const ctx = {
    weights,
    cache,
    compute,
    checkpoints,
    free: free[lacks],
    ...(over === null ? {} : { budget: over.budget }),
  };
  return new OnpolicyError('OUT_OF_MEMORY', msg, {
    detail: [{ loc: field.split('.'), msg, type: 'memory', ctx }],
  });
}

export function adapterError(
  name: string,
  { host, device }: MemoryNeed,
  free: FreeBytes,
  over: OverBudget | null,
): OnpolicyError {
  const place = device > 0 ? 'GPUs have' : 'this system has';
  const left = device > 0 ? free.device : free.host;
  const limit = over !== null ? overText(over) : `${place} ${mib(left)} free`;
  return new OnpolicyError('OUT_OF_MEMORY', `the adapter ${name} takes ${mib(host + device)}; ${limit}`);
}

function overText({ budget, held }: OverBudget): string {
  return held === 0
    ? `the budget of this runtime is ${mib(budget)}`
    : `models in use take ${mib(held)} of a budget of ${mib(budget)}`;
}
