/** The rows of a step -> calls of the listeners of its sequences. A sequence that has ended leaves the scheduler. */

import { errorAt, OnpolicyError } from '../errors.ts';
import type { StepResult } from './backend/index.ts';
import { ROW_STATUS, type SampledRows } from './native/index.ts';
import type { Plan } from './plan.ts';
import type { Scheduler } from './scheduler.ts';
import type { LogitsEditor, Sequence } from './sequence.ts';
import { scoredRows } from './step-layout.ts';

/** Receives a sequence's tokens. Called between steps; must not throw. */
export type Listener = {
  /**
   * A token was sampled in `row` of `rows`, after the accepted draft tokens, or the grammar forced it after that token, if no
   * log-probabilities were requested. `isFinal` means that the grammar allows only the end next. Returns true if the sequence has ended.
   */
  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean;
  /** The grammar of the sequence is complete and allows no further token, so the sequence has ended. */
  onComplete(): void;
  /**
   * Instead of {@link onToken} where the sampler returns candidates: those of `row` in `rows.candidates`. The sequence
   * waits until its next token is appended.
   */
  onCandidates?(rows: SampledRows, row: number): void;
  /** The sequence has failed. */
  onError(error: OnpolicyError): void;
};

const NO_TOKENS = new Int32Array(0);

/** The listeners of one engine. */
export class Delivery {
  readonly #scheduler: Scheduler;
  readonly #listeners = new Map<Sequence, Listener>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(sequence: Sequence, listener: Listener): void {
    this.#listeners.set(sequence, listener);
  }

  /** Returns false if the sequence has ended and thus has no listener any more. */
  remove(sequence: Sequence): boolean {
    return this.#listeners.delete(sequence);
  }

  /** Passes the results of a computed plan to the listeners of its sequences. Returns the number of delivered tokens. */
  deliver(plan: Plan, { samples, scores }: StepResult): number {
    let tokens = 0;
    let score = 0;
    for (const entry of plan.entries) {
      const { sequence } = entry;
      sequence.onComputed?.(sequence.place.computed);
      const rows = scoredRows(entry);
      if (rows > 0 && !sequence.promptScores!.push(scores, score, score + rows))
        this.fail(sequence, rowError(ROW_STATUS.NOT_NUMBERS, null));
      score += rows;
    }
    let row = 0;
    for (const entry of plan.entries)
      for (const sequence of entry.samples) {
        let last = row;
        for (const end = row + 1 + entry.drafts.length; row < end; row++) {
          if (samples.status[row] === ROW_STATUS.PASSED_OVER) continue;
          tokens += this.#accept(sequence, samples, row);
          last = row;
        }
        sequence.speculation?.propose(tokensOf(samples.drafts, last));
      }
    return tokens;
  }

  /** Ends a sequence that has failed. */
  fail(sequence: Sequence, error: OnpolicyError): void {
    const listener = this.#listeners.get(sequence);
    this.#end(sequence);
    listener?.onError(error);
  }

  failAll(error: OnpolicyError): void {
    const listeners = [...this.#listeners];
    for (const [sequence] of listeners) this.#end(sequence);
    for (const [, listener] of listeners) listener.onError(error);
  }

  #accept(sequence: Sequence, rows: SampledRows, row: number): number {
    const listener = this.#listeners.get(sequence);
    if (!listener) return 0; // removed while the step ran, or ended at a token before
    const status = rows.status[row]!;
    if (status === ROW_STATUS.COMPLETE) {
      this.#end(sequence);
      listener.onComplete();
      return 0;
    }
    if (status !== ROW_STATUS.SAMPLED) {
      this.fail(sequence, rowError(status, sequence.hook));
      return 0;
    }
    if (listener.onCandidates) {
      sequence.awaitToken();
      listener.onCandidates(rows, row);
      return 1;
    }
    const forced = tokensOf(rows.forced, row);
    const isFinal = rows.isFinal[row] === 1;
    const push = (token: number, isLast: boolean): boolean => {
      this.#scheduler.slots.appendToken(sequence, token);
      return listener.onToken(token, rows, row, isLast && isFinal);
    };
    let hasEnded = push(rows.tokens[row]!, forced.length === 0);
    let count = 1;
    for (; count <= forced.length && !hasEnded; count++)
      hasEnded = push(forced[count - 1]!, count === forced.length);
    if (hasEnded) this.#end(sequence);
    return count;
  }

  #end(sequence: Sequence): void {
    this.#listeners.delete(sequence);
    this.#scheduler.remove(sequence);
  }
}

/** The tokens of a row in a column of lists. */
function tokensOf(lists: SampledRows['forced'], row: number): Int32Array {
  if (!lists) return NO_TOKENS;
  const [start, end] = [lists.offsets[row]!, lists.offsets[row + 1]!];
  return start === end ? NO_TOKENS : lists.ids.subarray(start, end);
}

/** Returns the error of a row from which no token was sampled. */
function rowError(status: number, hook: LogitsEditor | null): OnpolicyError {
  if (hook?.error) return hook.error;
  if (status === ROW_STATUS.NO_TOKEN_ALLOWED)
    return new OnpolicyError('NO_ALLOWED_TOKEN', 'the constraints of this request left no token to sample');
  return hook
    ? errorAt('logits_processors', 'INVALID_REQUEST', 'the edited logits hold NaN')
    : new OnpolicyError('BACKEND_FAILED', 'the model produced logits that are not numbers');
}
