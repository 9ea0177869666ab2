/** A validated request -> the native sampler's plan, and one sampler per choice. */

import {
  loadAddon,
  type SamplerHandle,
  type SamplerPlanOptions,
  type TokenTextsHandle,
} from '../engine/native/index.ts';
import { NO_BYTES, type SpecialTokens, type Tokenizer } from '../engine/tokenizer/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';

/** Sampling settings that a model recommends. Null for a setting without recommendation. */
export type SamplingDefaults = {
  readonly temperature: number | null;
  readonly top_p: number | null;
  readonly top_k: number | null;
  readonly min_p: number | null;
  readonly repetition_penalty: number | null;
};

/** Ids that end a choice, and special tokens that are text. */
export type EndRules = SpecialTokens & {
  readonly stopIds: ReadonlySet<number>;
  readonly endIds: ReadonlySet<number>;
  readonly ignoreEos: boolean;
};

/** Data that the plan needs in addition to the request. */
export type PlanContext = {
  readonly tokenizer: Tokenizer;
  readonly defaults: SamplingDefaults;
  readonly rules: EndRules;
  readonly processedLogprobs: boolean;
};

/** Returns one sampler per choice; choice i draws from seed + i. */
export function createSamplers(
  request: ValidChatRequest,
  prompt: Int32Array,
  seed: bigint,
  context: PlanContext,
): SamplerHandle[] {
  const { Sampler, SamplerPlan } = loadAddon();
  const { tokenizer, defaults, rules } = context;
  const plan = new SamplerPlan({
    vocabSize: tokenizer.vocabSize,
    ...numbersOf(request, defaults),
    ...breakersOf(request, tokenizer),
    logitBiasIds: Int32Array.from(request.logit_bias.keys()),
    logitBiasValues: Float32Array.from(request.logit_bias.values()),
    ...(request.allowed_token_ids ? { allowed: toMask(request.allowed_token_ids, tokenizer.vocabSize) } : {}),
    ...badWordsOf(request, tokenizer, rules),
    // masked until `min_tokens` were generated
    stopIds: Int32Array.from(new Set([...rules.stopIds, ...rules.endIds])),
    endIds: Int32Array.from(rules.ignoreEos ? [] : rules.endIds),
    topLogprobs: request.logprobs
      ? request.top_logprobs === -1
        ? tokenizer.vocabSize
        : request.top_logprobs
      : -1,
    logprobIds: Int32Array.from(new Set(request.logprob_token_ids)),
    processedLogprobs: context.processedLogprobs,
    candidates: request.use_beam_search ? 2 * request.n : 0,
  });
  return Array.from({ length: request.n }, (_, index) => {
    const sampler = new Sampler(plan, BigInt.asUintN(64, seed + BigInt(index)));
    sampler.acceptPrompt(prompt);
    return sampler;
  });
}

/** Copies a sampler in its current state. */
export function forkSampler(sampler: SamplerHandle): SamplerHandle {
  const { Sampler } = loadAddon();
  return new Sampler(sampler);
}

/** Returns the mask (ceil(vocab / 32)): bit = allowed, little-endian within a word. */
function toMask(ids: readonly number[], vocabSize: number): Uint32Array {
  const mask = new Uint32Array(Math.ceil(vocabSize / 32));
  for (const id of ids) mask[id >> 5]! |= 1 << (id & 31);
  return mask;
}

/** Returns the texts that the answer must not contain. White space before a word is removed. */
function badWordsOf(
  { bad_words: words }: ValidChatRequest,
  tokenizer: Tokenizer,
  specials: SpecialTokens,
): Pick<SamplerPlanOptions, 'bad_words' | 'tokenTexts'> {
  if (words.length === 0) return {};
  return {
    bad_words: words.map((word) => word.trimStart()),
    tokenTexts: tokenTexts(tokenizer, specials.skipSpecial),
  };
}

/** Returns the numbers of the request, with the model's defaults for missing ones. Null turns a setting off. */
function numbersOf(request: ValidChatRequest, defaults: SamplingDefaults): Partial<SamplerPlanOptions> {
  const given: Partial<Record<string, unknown>> = request;
  const own: Partial<Record<string, unknown>> = defaults;
  const numbers: Record<string, unknown> = {};
  for (const field of loadAddon().samplerFields) {
    const value = given[field] ?? own[field];
    if (value != null) numbers[field] = value;
  }
  return numbers;
}

function breakersOf(
  { dry_multiplier, dry_sequence_breakers }: ValidChatRequest,
  tokenizer: Tokenizer,
): Partial<SamplerPlanOptions> {
  if (dry_multiplier === 0 || dry_sequence_breakers.length === 0) return {};
  return { dry_sequence_breakers, breakerTexts: tokenTexts(tokenizer, false) };
}

/** Token texts, made once per vocabulary: without the text of special tokens, and with it. */
const knownTexts = new WeakMap<Tokenizer, Map<boolean, TokenTextsHandle>>();

function tokenTexts(tokenizer: Tokenizer, skipSpecial: boolean): TokenTextsHandle {
  const known = knownTexts.get(tokenizer) ?? new Map<boolean, TokenTextsHandle>();
  knownTexts.set(tokenizer, known);
  const made = known.get(skipSpecial) ?? makeTexts(tokenizer, skipSpecial);
  known.set(skipSpecial, made);
  return made;
}

function makeTexts(tokenizer: Tokenizer, skipSpecial: boolean): TokenTextsHandle {
  const { TokenTexts } = loadAddon();
  const texts: Uint8Array[] = [];
  const offsets = new Uint32Array(tokenizer.vocabSize + 1);
  for (let id = 0; id < tokenizer.vocabSize; id++) {
    const text = skipSpecial && tokenizer.isSpecial(id) ? NO_BYTES : tokenizer.bytesOf(id);
    texts.push(text);
    offsets[id + 1] = offsets[id]! + text.length;
  }
  return new TokenTexts(new Uint8Array(Buffer.concat(texts)), offsets);
}
