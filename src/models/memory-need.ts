/** The memory needs of a model -> errors with the figures. */

import { mib } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { MemoryEstimate } from './formats/index.ts';

/** Bytes that a model takes, and on which devices. */
export type MemoryNeed = Omit<MemoryEstimate, 'caches'> & {
  /** The part that must be free in main memory. Mapped weights are excluded, because the system can drop their pages. */
  readonly host: number;
  /** The part that is on GPUs. */
  readonly device: number;
};

/** Free bytes of main memory, and of all GPUs. */
export type FreeBytes = { readonly host: number; readonly device: number };

/** Weights, cache, buffers and checkpoints together. */
export function totalBytes({ weights, cache, compute, checkpoints }: MemoryNeed): number {
  return weights + cache + compute + checkpoints;
}

/** Bytes that models may take together, and bytes of the models that cannot be unloaded. */
export type OverBudget = { readonly budget: number; readonly held: number };

/** Returns the error of a model that does not fit, with its figures. `over`: null if the system itself has too little memory. */
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
