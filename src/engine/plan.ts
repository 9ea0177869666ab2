/** What one step computes: tokens of sequences, with drafts behind them, and how many of a sequence it may take. */
import type { Sequence } from './sequence.ts';

/** Some tokens of one sequence in a step, and who samples from the last of them. */
export type Entry = {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** The sequence itself if this computes its last token, and siblings that start from the same prompt. */
  readonly samples: readonly Sequence[];
  /** Tokens after its last one that are computed and sampled as well: they count if they are what is sampled. */
  readonly drafts: Int32Array;
};

/** What runs next: sequences of one adapter. */
export type Plan = {
  readonly adapter: number;
  readonly entries: readonly Entry[];
  /** (edits, 5), as the backend takes them. */
  readonly edits: readonly number[];
  /** All live sequences decode one token, so the next step is predictable. */
  readonly isSteady: boolean;
};

/** No tokens behind the last one. */
export const NO_DRAFTS = new Int32Array(0);

/** How many of a sequence's tokens fit into what a step has left, and before its next checkpoint. */
export function nextChunk(sequence: Sequence, budget: number, scoreRows: number): number {
  const { layout, computed, checkpoints } = sequence;
  const end = checkpoints.find((place) => place > computed) ?? sequence.length;
  let count = Math.max(0, Math.min(end - computed, budget));
  if (layout && count > 0)
    count = layout.limit(computed, layout.isWholeAt(computed) ? end - computed : count);
  return sequence.promptScores?.limit(computed, count, scoreRows) ?? count;
}

/** Tokens that an entry computes. */
export function tokensIn({ count, drafts }: Entry): number {
  return count + drafts.length;
}

/** Whether the prompt of a sequence is computed: its next tokens are sampled or forced ones. */
export function isDecoding({ computed, group }: Sequence): boolean {
  return computed >= group.prompt.length;
}
