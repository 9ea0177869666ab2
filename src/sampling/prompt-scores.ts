/** Scored rows of a prompt, chunk by chunk -> the `prompt_logprobs` of the wire. */
import { errorAt } from '../errors.ts';
import { ROW_STATUS, type SampledRows } from '../native/index.ts';
import type { PromptLogprobs, ValidChatRequest } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { LOGPROB_FLOOR } from './logprobs.ts';

/** Alternatives in one step at most, and in one answer. */
const STEP_ALTERNATIVES = 2 ** 22;
const ANSWER_ALTERNATIVES = 2 ** 22;

const decoder = new TextDecoder();

/** One scored prompt token with the best tokens of its place. */
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

  /** Position of the first row that is still needed; the cache of what stands before it may come from anywhere. */
  get firstRow(): number {
    return this.#scores.length;
  }

  /** Rows that are needed between two positions. */
  rowsIn(start: number, end: number): number {
    return Math.max(0, Math.min(end, this.#prompt.length - 1) - Math.max(start, this.firstRow));
  }

  /** Of `count` tokens from `start` on, how many can run when `rows` rows may be scored. */
  limit(start: number, count: number, rows: number): number {
    const allowed = Math.min(
      rows,
      Math.max(1, Math.floor(STEP_ALTERNATIVES / Math.max(1, this.#alternatives))),
    );
    if (this.rowsIn(start, start + count) <= allowed) return count;
    return Math.max(0, Math.max(start, this.firstRow) + allowed - start);
  }

  /** The {@link Step.scoreRows} of the tokens from `start` to `end`: `at` is the index of `start` in the step. */
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

  /** One entry per prompt token, null for the first. */
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

/** What collects a request's `prompt_logprobs`; null when it wants none. */
export function createPromptScores(
  request: ValidChatRequest,
  prompt: Int32Array,
  vocabSize: number,
): PromptScores | null {
  const asked = request.prompt_logprobs;
  if (asked === null) return null;
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
