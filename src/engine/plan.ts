/** The plan of one step: tokens of sequences, with drafts after them. */
import type { Sequence } from './sequence.ts';

/** Some tokens of one sequence in a step, and the sequences that sample from the last of them. */
export type Entry = {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** The sequence itself if this computes its last token, and siblings that start from the same prompt. */
  readonly samples: readonly Sequence[];
  /** Draft tokens after its last one. They are computed and sampled as well, and count if they match the sampled tokens. */
  readonly drafts: Int32Array;
};

/** The next step: entries of sequences with the same adapter. */
export type Plan = {
  readonly adapter: number;
  readonly entries: readonly Entry[]; // in order of their slots
  /** (edits, 5) edits of the cache, in the backend's layout. */
  readonly edits: readonly number[];
  /** True if all live sequences decode one token, so that the next step is predictable. */
  readonly isSteady: boolean;
};

/** An empty list of draft tokens. */
export const NO_DRAFTS = new Int32Array(0);

/** Tokens that an entry computes. */
export function tokensIn({ count, drafts }: Entry): number {
  return count + drafts.length;
}
