/** A validated request -> the native sampler's plan, and one sampler per choice. */

import { loadAddon, type SamplerHandle } from '../native/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';

/** Sampling settings that a model recommends; null: none. */
export type SamplingDefaults = {
  readonly temperature: number | null;
  readonly top_p: number | null;
  readonly top_k: number | null;
  readonly min_p: number | null;
  readonly repetition_penalty: number | null;
};

/** Ids that end a choice. */
export type EndIds = { readonly stopIds: ReadonlySet<number>; readonly endIds: ReadonlySet<number> };

/** What the plan needs beside the request. */
export type PlanContext = {
  readonly tokenizer: Tokenizer;
  readonly defaults: SamplingDefaults;
  readonly rules: EndIds;
  readonly processedLogprobs: boolean;
};

/** One sampler per choice; choice i draws from seed + i. */
export async function createSamplers(
  request: ValidChatRequest,
  prompt: Int32Array,
  seed: bigint,
  context: PlanContext,
): Promise<SamplerHandle[]> {
  const { Sampler, SamplerPlan } = loadAddon();
  const { tokenizer, defaults, rules } = context;
  const plan = new SamplerPlan({
    vocabSize: tokenizer.vocabSize,
    temperature: request.temperature ?? defaults.temperature ?? 1,
    topP: request.top_p ?? defaults.top_p ?? 1,
    minP: request.min_p ?? defaults.min_p ?? 0,
    topK: request.top_k ?? defaults.top_k ?? 0,
    repetitionPenalty: request.repetition_penalty ?? defaults.repetition_penalty ?? 1,
    frequencyPenalty: request.frequency_penalty,
    presencePenalty: request.presence_penalty,
    logitBiasIds: Int32Array.from(request.logit_bias.keys()),
    logitBiasValues: Float32Array.from(request.logit_bias.values()),
    ...(request.allowed_token_ids ? { allowed: toMask(request.allowed_token_ids, tokenizer.vocabSize) } : {}),
    badWords: await encodeBadWords(request.bad_words, tokenizer),
    minTokens: request.min_tokens,
    stopIds: Int32Array.from(stopSet(rules)),
    topLogprobs: request.logprobs
      ? request.top_logprobs === -1
        ? tokenizer.vocabSize
        : request.top_logprobs
      : -1,
    processedLogprobs: context.processedLogprobs,
    candidates: request.use_beam_search ? 2 * request.n : 0,
  });
  return Array.from({ length: request.n }, (_, index) => {
    const sampler = new Sampler(plan, BigInt.asUintN(64, seed + BigInt(index)));
    sampler.acceptPrompt(prompt);
    return sampler;
  });
}

/** A sampler in the present state of another one. */
export function forkSampler(sampler: SamplerHandle): SamplerHandle {
  const { Sampler } = loadAddon();
  return new Sampler(sampler);
}

/** Ids that are masked until `min_tokens` were generated: the request's stop ids and every end id. */
function stopSet(rules: EndIds): Set<number> {
  return new Set([...rules.stopIds, ...rules.endIds]);
}

/** (ceil(vocab / 32)) bit = allowed, little-endian within a word. */
function toMask(ids: readonly number[], vocabSize: number): Uint32Array {
  const mask = new Uint32Array(Math.ceil(vocabSize / 32));
  for (const id of ids) mask[id >> 5]! |= 1 << (id & 31);
  return mask;
}

/**
 * The token sequences that spell each word: bare, and with a space before it when that form begins with another token
 * and is as long.
 */
async function encodeBadWords(words: readonly string[], tokenizer: Tokenizer): Promise<Int32Array[]> {
  const sequences: Int32Array[] = [];
  const encode = (text: string): Promise<Int32Array> =>
    tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
  for (const word of words) {
    const bare = await encode(word.trimStart());
    const spaced = await encode(` ${word.trimStart()}`);
    if (bare.length > 0) sequences.push(bare);
    if (spaced.length > 0 && spaced.length === bare.length && spaced[0] !== bare[0]) sequences.push(spaced);
  }
  return sequences;
}
