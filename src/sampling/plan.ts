/** A validated request -> the native sampler's plan, and one sampler per choice. */

import {
  loadAddon,
  type SamplerHandle,
  type SamplerPlanOptions,
  type TokenTextsHandle,
} from '../native/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import { NO_BYTES, type SpecialTokens, type Tokenizer } from '../tokenizer/index.ts';

/** Sampling settings that a model recommends; null: none. */
export type SamplingDefaults = {
  readonly temperature: number | null;
  readonly top_p: number | null;
  readonly top_k: number | null;
  readonly min_p: number | null;
  readonly repetition_penalty: number | null;
};

/** Ids that end a choice, and which special tokens are text. */
export type EndRules = SpecialTokens & {
  readonly stopIds: ReadonlySet<number>;
  readonly endIds: ReadonlySet<number>;
  readonly ignoreEos: boolean;
};

/** What the plan needs beside the request. */
export type PlanContext = {
  readonly tokenizer: Tokenizer;
  readonly defaults: SamplingDefaults;
  readonly rules: EndRules;
  readonly processedLogprobs: boolean;
};

/** One sampler per choice; choice i draws from seed + i. */
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
    temperature: request.temperature ?? defaults.temperature ?? 1,
    topP: request.top_p ?? defaults.top_p ?? 1,
    minP: request.min_p ?? defaults.min_p ?? 0,
    topK: request.top_k ?? defaults.top_k ?? 0,
    ...llamaSamplersOf(request, tokenizer),
    repetitionPenalty: request.repetition_penalty ?? defaults.repetition_penalty ?? 1,
    frequencyPenalty: request.frequency_penalty,
    presencePenalty: request.presence_penalty,
    logitBiasIds: Int32Array.from(request.logit_bias.keys()),
    logitBiasValues: Float32Array.from(request.logit_bias.values()),
    ...(request.allowed_token_ids ? { allowed: toMask(request.allowed_token_ids, tokenizer.vocabSize) } : {}),
    ...badWordsOf(request, tokenizer, rules),
    minTokens: request.min_tokens,
    stopIds: Int32Array.from(stopSet(rules)),
    endIds: Int32Array.from(rules.ignoreEos ? [] : rules.endIds),
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
function stopSet(rules: EndRules): Set<number> {
  return new Set([...rules.stopIds, ...rules.endIds]);
}

/** (ceil(vocab / 32)) bit = allowed, little-endian within a word. */
function toMask(ids: readonly number[], vocabSize: number): Uint32Array {
  const mask = new Uint32Array(Math.ceil(vocabSize / 32));
  for (const id of ids) mask[id >> 5]! |= 1 << (id & 31);
  return mask;
}

/** The texts that the answer must not hold. White space before a word is no part of it. */
function badWordsOf(
  { bad_words: words }: ValidChatRequest,
  tokenizer: Tokenizer,
  specials: SpecialTokens,
): Pick<SamplerPlanOptions, 'badWords' | 'tokenTexts'> {
  if (words.length === 0) return {};
  return {
    badWords: words.map((word) => word.trimStart()),
    tokenTexts: tokenTexts(tokenizer, specials.skipSpecial),
  };
}

/** Samplers that are on. */
function llamaSamplersOf(request: ValidChatRequest, tokenizer: Tokenizer): Partial<SamplerPlanOptions> {
  const breakers = request.dry_sequence_breakers;
  return {
    typicalP: request.typical_p,
    xtcProbability: request.xtc_probability,
    xtcThreshold: request.xtc_threshold,
    dynatempRange: request.dynatemp_range,
    dynatempExponent: request.dynatemp_exponent,
    mirostat: request.mirostat,
    mirostatTau: request.mirostat_tau,
    mirostatEta: request.mirostat_eta,
    ...(request.dry_multiplier === 0
      ? {}
      : {
          dryMultiplier: request.dry_multiplier,
          dryBase: request.dry_base,
          dryAllowedLength: request.dry_allowed_length,
          dryLastN: request.dry_penalty_last_n,
          dryBreakers: breakers,
          ...(breakers.length === 0 ? {} : { breakerTexts: tokenTexts(tokenizer, false) }),
        }),
  };
}

/** Made once per vocabulary: without the text of special tokens, and with it. */
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
