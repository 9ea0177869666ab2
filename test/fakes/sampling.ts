/** Short ways to the native sampler for its tests. */
import { loadAddon } from '../../src/native/index.ts';
import type { SamplerHandle, SamplerPlanOptions } from '../../src/native/sampler.ts';

/** How a sequence came to where a test samples it. */
export type History = { readonly prompt?: readonly number[]; readonly output?: readonly number[] };

/** A native sampler with a history. */
export function nativeSampler(
  plan: SamplerPlanOptions,
  seed: bigint,
  { prompt = [], output = [] }: History = {},
  kernels?: string,
): SamplerHandle {
  const addon = loadAddon();
  const sampler = new addon.Sampler(new addon.SamplerPlan(plan), seed, kernels);
  sampler.acceptPrompt(Int32Array.from(prompt));
  for (const id of output) sampler.accept(id);
  return sampler;
}

/** Logits whose softmax is `probabilities`. */
export function logitsOf(probabilities: readonly number[]): Float32Array {
  return Float32Array.from(probabilities, Math.log);
}

/** The set of tokens that `count` draws give. */
export function drawnTokens(
  plan: SamplerPlanOptions,
  logits: Float32Array,
  history: History = {},
  count = 5000,
): number[] {
  const draws = nativeSampler(plan, 99n, history).drawMany(logits, count);
  return [...new Set(draws)].sort((a, b) => a - b);
}
