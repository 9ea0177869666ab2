/** Scored rows of a prompt, chunk by chunk -> the `prompt_logprobs` of the wire. */

import { ROW_STATUS, type SampledRows } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt } from '../errors.ts';
import type { PromptLogprobs, ValidChatRequest } from '../protocol/index.ts';
import { LOGPROB_FLOOR } from './logprobs.ts';

/** Highest number of alternatives of prompt tokens in one step, and of prompt or generated tokens in one answer. */
const STEP_ALTERNATIVES = 2 ** 22;
const ANSWER_ALTERNATIVES = 2 ** 22;

const decoder = new TextDecoder();

/** One scored prompt token with the best tokens at its position. */
type Score = {
  readonly logprob: number;
  readonly rank: number;
  readonly topIds: Int32Array; // (alternatives) best first
  readonly topLogprobs: Float32Array; // (alternatives)
};

/**
 * Collects the log-probabilities of a prompt. The row of position p scores token p + 1: the first token has no score, and
 * the last row belongs to the sampler.
 */
export class PromptScores {
  readonly #prompt: Int32Array;
  readonly #alternatives: number;
  readonly #scores: Score[] = [];

  constructor(prompt: Int32Array, alternatives: number) {
    this.#prompt = prompt;
    this.#alternatives = alternatives;
  }

  /** Position of the first row that is still needed. Tokens before it may be taken from any cache. */
  get firstRow(): number {
    return this.#scores.length;
  }

  /** Returns the number of rows needed between two positions. */
  rowsIn(start: number, end: number): number {
    return Math.max(0, Math.min(end, this.#prompt.length - 1) - Math.max(start, this.firstRow));
  }

  /** Returns how many of `count` tokens from `start` on can run if `rows` rows may be scored. */
  limit(start: number, count: number, rows: number): number {
    const allowed = Math.min(
      rows,
      Math.max(1, Math.floor(STEP_ALTERNATIVES / Math.max(1, this.#alternatives))),
    );
    if (this.rowsIn(start, start + count) <= allowed) return count;
    return Math.max(0, Math.max(start, this.firstRow) + allowed - start);
  }

  /** Returns the {@link Step.scoreRows} of the tokens from `start` to `end`: `at` is the index of `start` in the step. */
  layOut(start: number, end: number, at: number): Int32Array {
    const rows = new Int32Array(3 * this.rowsIn(start, end));
    const first = Math.max(start, this.firstRow);
    for (let i = 0; 3 * i < rows.length; i++)
      rows.set([at + first + i - start, this.#prompt[first + i + 1]!, this.#alternatives], 3 * i);
    return rows;
  }

  /** Adds rows `from` to `to`, which follow the last ones. Returns false if the model's logits are not numbers. */
  push(rows: SampledRows, from: number, to: number): boolean {
    for (let row = from; row < to; row++) {
      if (rows.status[row] !== ROW_STATUS.SAMPLED) return false;
      const [start, end] = [rows.topOffsets[row]!, rows.topOffsets[row + 1]!];
      this.#scores.push({
        logprob: rows.logprobs[row]!,
        rank: rows.ranks[row]!,
        topIds: rows.topIds.slice(start, end),
        topLogprobs: rows.topLogprobs.slice(start, end),
      });
    }
    return true;
  }

  /** Returns one entry per prompt token, null for the first. */
  entries(tokenizer: Tokenizer): (PromptLogprobs | null)[] {
    const entries: (PromptLogprobs | null)[] = [null];
    const entryOf = (id: number, logprob: number, rank: number): PromptLogprobs[string] => ({
      logprob: Math.max(logprob, LOGPROB_FLOOR),
      rank,
      decoded_token: decoder.decode(tokenizer.bytesOf(id)),
    });
    for (const [i, { logprob, rank, topIds, topLogprobs }] of this.#scores.entries()) {
      const token = this.#prompt[i + 1]!;
      const entry: PromptLogprobs = { [token]: entryOf(token, logprob, rank) };
      for (const [at, id] of topIds.entries()) entry[id] = entryOf(id, topLogprobs[at]!, at + 1);
      entries.push(entry);
    }
    return entries;
  }
}

/** Returns the collector of a request's `prompt_logprobs`. `asked`: alternatives of each token, -1 for all. */
export function createPromptScores(asked: number, prompt: Int32Array, vocabSize: number): PromptScores {
  const alternatives = asked === -1 ? vocabSize : asked;
  if (prompt.length * alternatives > ANSWER_ALTERNATIVES)
    throw errorAt(
      'prompt_logprobs',
      'INVALID_REQUEST',
      `${alternatives} alternatives for ${prompt.length} prompt tokens are more than the ` +
        `${ANSWER_ALTERNATIVES} that one answer may hold; at most ${Math.floor(ANSWER_ALTERNATIVES / prompt.length)} fit`,
    );
  return new PromptScores(prompt, alternatives);
}

/** Alternatives per token that any answer may have: the maximum of OpenAI's API. */
const FREE_ALTERNATIVES = 20;

/**
 * Throws if the `top_logprobs` or `logprob_token_ids` of all tokens that may be generated exceed the limit of one answer. Chunks of a
 * stream contain few.
 */
export function requireTopLogprobsFit(
  request: Pick<ValidChatRequest, 'logprobs' | 'top_logprobs' | 'logprob_token_ids' | 'stream' | 'n'>,
  maxTokens: number,
  vocabSize: number,
): void {
  const asked = request.logprob_token_ids?.length ?? 0;
  const alternatives = asked > 0 ? asked : request.top_logprobs === -1 ? vocabSize : request.top_logprobs;
  if (!request.logprobs || request.stream || alternatives <= FREE_ALTERNATIVES) return;
  const tokens = request.n * maxTokens;
  if (tokens * alternatives <= ANSWER_ALTERNATIVES) return;
  const fitting = Math.floor(ANSWER_ALTERNATIVES / (alternatives * request.n));
  throw errorAt(
    asked > 0 ? 'logprob_token_ids' : 'top_logprobs',
    'INVALID_REQUEST',
    `${alternatives} alternatives for up to ${tokens} tokens are more than the ${ANSWER_ALTERNATIVES} that one ` +
      `answer may hold; with max_completion_tokens of at most ${fitting} they fit, or in a stream`,
  );
}
