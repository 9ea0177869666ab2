/** Log-probabilities of chats and of prompts -> those of text completions, with the place of each token in the text. */
import type { PromptLogprobs, TextLogprobs, TokenLogprob } from '../../protocol/index.ts';
import { NO_BYTES } from '../../tokenizer/index.ts';

/** Counts characters of a text by the bytes of its tokens. A token inside a character begins where that begins. */
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

/** Adds the tokens of an answer. `bytes`: of each token, those in the text. */
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

/** Adds the tokens of a prompt. `scores`: `prompt_logprobs` of a chat; `most` best tokens of a place are shown, -1 for all. */
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

/** Of the tokens of one place the best ones, and the one that stands there. */
function fewer(score: PromptLogprobs, id: number | undefined, most: number): PromptLogprobs {
  if (most === -1) return score;
  return Object.fromEntries(
    Object.entries(score).filter(([key, { rank }]) => Number(key) === id || rank <= most),
  );
}

/** The same, best first. */
function bestOf(score: PromptLogprobs, id: number, most: number): [id: number, logprob: number][] {
  return Object.entries(fewer(score, id, most))
    .sort(([, one], [, other]) => one.rank - other.rank)
    .map(([key, { logprob }]) => [Number(key), logprob]);
}

/** Scores of a prompt with fewer best tokens. */
export function fewerScores(
  scores: readonly (PromptLogprobs | null)[],
  ids: readonly number[],
  most: number,
): (PromptLogprobs | null)[] {
  return scores.map((score, i) => score && fewer(score, ids[i], most));
}

/** By text; of tokens with the same text the first one counts. */
function best(
  entries: readonly { readonly token: string; readonly logprob: number }[],
): Record<string, number> {
  const shown: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const { token, logprob } of entries) shown[token] ??= logprob;
  return { ...shown };
}
