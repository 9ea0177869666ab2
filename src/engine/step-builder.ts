/** Rules of the scheduler -> the entries of the next step, within its limits of tokens and rows. */
import { type Entry, NO_DRAFTS } from './plan.ts';
import { isBackground } from './queues.ts';
import type { Sequence } from './sequence.ts';

/** A step that is being planned. */
export class StepBuilder {
  readonly adapter: number;
  readonly entries: Entry[] = [];
  readonly #pausesBackground: boolean;
  /** Tokens that it has room for. */
  tokens: number;
  /** Rows of logits that it has room for, beside those that are sampled from. */
  scoreRows: number;
  /** Forced tokens that this step leaves to a later one. */
  surplus = 0;
  /** True if a sequence was preempted for others. No further sequence then starts. */
  hasPreempted = false;

  /** `pausesBackground`: sequences of the background compute nothing in it. */
  constructor(adapter: number, pausesBackground: boolean, tokens: number, scoreRows: number) {
    this.adapter = adapter;
    this.#pausesBackground = pausesBackground;
    this.tokens = tokens;
    this.scoreRows = scoreRows;
  }

  /** True if this is a background sequence while foreground sequences run or wait. */
  isPaused(sequence: Sequence): boolean {
    return this.#pausesBackground && isBackground(sequence);
  }

  /** Returns true if a sequence may have tokens in this step. */
  isOpenTo(sequence: Sequence): boolean {
    return sequence.group.adapter === this.adapter && !this.isPaused(sequence);
  }

  /** Returns how many of a sequence's tokens fit into the rest of the step and before its next checkpoint. */
  chunkOf(sequence: Sequence): number {
    const { layout, promptScores } = sequence;
    const { computed, checkpoints } = sequence.place;
    const end = checkpoints.find((place) => place > computed) ?? sequence.length;
    let count = Math.max(0, Math.min(end - computed, this.tokens));
    if (layout && count > 0)
      count = layout.limit(computed, layout.isWholeAt(computed) ? end - computed : count);
    return promptScores?.limit(computed, count, this.scoreRows) ?? count;
  }

  /** Adds the next tokens of a sequence. */
  add(sequence: Sequence, count: number, samples: readonly Sequence[]): void {
    const start = sequence.place.computed;
    this.tokens -= count;
    this.scoreRows -= sequence.promptScores?.rowsIn(start, start + count) ?? 0;
    this.entries.push({ sequence, start, count, samples, drafts: NO_DRAFTS });
  }
}
