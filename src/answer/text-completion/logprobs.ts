/** Log-probabilities of chats and of prompts -> those of text completions, with the offset of each token in the text. */

import { NO_BYTES } from '../../engine/tokenizer/index.ts';
import type { PromptLogprobs, TextLogprobs, TokenLogprob } from '../../protocol/index.ts';

/** Counts characters of a text by the bytes of its tokens. A token inside a character has the offset of that character. */
export class TextOffsets {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #characters = 0; // whole ones

  next(bytes: Uint8Array): number {
    const offset = this.#characters;
    for (const _ of this.#decoder.decode(bytes, { stream: true })) this.#characters += 1;
    return offset;
  }
}

export function noLogprobs(): TextLogprobs {
  return { text_offset: [], token_logprobs: [], tokens: [], top_logprobs: [] };
}

/** Adds the tokens of an answer. `bytes` are those of each token in the text. */
export function addAnswer(
  to: TextLogprobs,
  entries: readonly TokenLogprob[],
  bytes: readonly Uint8Array[],
  offsets: TextOffsets,
): void {
  for (const [i, { token, logprob, top_logprobs }] of entries.entries()) {
    to.text_offset.push(offsets.next(bytes[i] ?? NO_BYTES));
    to.tokens.push(token);
    to.token_logprobs.push(logprob);
    to.top_logprobs.push(best([...top_logprobs, { token, logprob }]));
  }
}

/**
 * Adds the tokens of a prompt. `scores` are the `prompt_logprobs` of a chat; `most` is the number of best tokens shown per position, -1 for
 * all.
 */
export function addPrompt(
  to: TextLogprobs,
  ids: readonly number[],
  scores: readonly (PromptLogprobs | null)[],
  show: { readonly most: number; readonly textOf: (id: number) => string },
  bytes: readonly Uint8Array[],
  offsets: TextOffsets,
): void {
  for (const [i, id] of ids.entries()) {
    const score = scores[i] ?? null;
    const shown = score && bestOf(score, id, show.most);
    to.text_offset.push(offsets.next(bytes[i] ?? NO_BYTES));
    to.tokens.push(show.textOf(id));
    to.token_logprobs.push(score ? score[id]!.logprob : null);
    to.top_logprobs.push(
      shown && best(shown.map(([key, logprob]) => ({ token: show.textOf(key), logprob }))),
    );
  }
}

/** Returns the `most` best tokens of one position, and the token at it. */
function fewer(score: PromptLogprobs, id: number | undefined, most: number): PromptLogprobs {
  if (most === -1) return score;
  return Object.fromEntries(
    Object.entries(score).filter(([key, { rank }]) => Number(key) === id || rank <= most),
  );
}

/** Returns the tokens of {@link fewer}, best first. */
function bestOf(score: PromptLogprobs, id: number, most: number): [id: number, logprob: number][] {
  return Object.entries(fewer(score, id, most))
    .sort(([, one], [, other]) => one.rank - other.rank)
    .map(([key, { logprob }]) => [Number(key), logprob]);
}

/** Returns the scores of a prompt with at most `most` best tokens per position. */
export function fewerScores(
  scores: readonly (PromptLogprobs | null)[],
  ids: readonly number[],
  most: number,
): (PromptLogprobs | null)[] {
  return scores.map((score, i) => score && fewer(score, ids[i], most));
}

/** Returns the log-probabilities by token text. Of tokens with the same text, the first counts. */
function best(
  entries: readonly { readonly token: string; readonly logprob: number }[],
): Record<string, number> {
  const shown: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const { token, logprob } of entries) shown[token] ??= logprob;
  return { ...shown };
}
