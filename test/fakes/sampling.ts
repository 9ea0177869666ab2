/** Short ways to the native sampler for its tests. */
import type { SamplerPlanOptions, TokenTextsHandle } from '../../src/engine/native/sampler.ts';
import { type TestedSampler, testing } from '../addon/testing-addon.ts';

/** How a sequence came to where a test samples it. */
export type History = { readonly prompt?: readonly number[]; readonly output?: readonly number[] };

const FIRST_LETTER = 0x4e00;

/** The text of tokens, each of which is a letter of its own. */
export function wordOf(...ids: number[]): string {
  return String.fromCodePoint(...ids.map((id) => FIRST_LETTER + id));
}

/** The tokens of such a text. */
export function lettersOf(word: string): number[] {
  return Array.from(word, (letter) => letter.codePointAt(0)! - FIRST_LETTER);
}

const knownTexts = new Map<number, TokenTextsHandle>();

/** A vocabulary of letters. */
export function letterTexts(vocabSize: number): TokenTextsHandle {
  const known = knownTexts.get(vocabSize) ?? makeTexts(vocabSize);
  knownTexts.set(vocabSize, known);
  return known;
}

function makeTexts(vocabSize: number): TokenTextsHandle {
  const texts = Array.from({ length: vocabSize }, (_, id) => Buffer.from(wordOf(id)));
  const offsets = new Uint32Array(vocabSize + 1);
  for (const [id, text] of texts.entries()) offsets[id + 1] = offsets[id]! + text.length;
  return new testing.TokenTexts(new Uint8Array(Buffer.concat(texts)), offsets);
}

/** A native sampler with a history. Bad words are made with {@link wordOf}. */
export function nativeSampler(
  plan: SamplerPlanOptions,
  seed: bigint,
  { prompt = [], output = [] }: History = {},
): TestedSampler {
  const texts = plan.bad_words ? { tokenTexts: letterTexts(plan.vocabSize) } : {};
  const sampler = new testing.Sampler(new testing.SamplerPlan({ ...texts, ...plan }), seed);
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
