/** Cells and a waiting sequence -> the slot on whose cache it should start. Only reads cells. */
import type { Cells } from './cells.ts';
import { isWorthKeeping, reusableCount } from './checkpoint-rules.ts';
import type { PrefixMatch } from './prefix-cache.ts';
import type { Sequence } from './sequence.ts';

/** A slot whose cache begins with `length` of the wanted tokens. */
export type Prefix = {
  readonly slot: number;
  readonly length: number;
  /** Number of the checkpoint after these tokens, if the slot alone cannot be cut to them. */
  readonly checkpoint?: number;
};

/** A running sequence that will have more of the tokens soon, if it leaves a checkpoint behind the first `place` ones. */
export type WantedCheckpoint = { readonly of: Sequence; readonly place: number };

type Found = Prefix | WantedCheckpoint | 'soon' | null;

/** Shorter prefixes are computed again where a copy takes cells. */
const MIN_COPIED_TOKENS = 16;

/** The slot with most of a sequence's tokens computed; `soon` or a wanted checkpoint if a running sequence is about to have more. */
export function findPrefix(cells: Cells, sequence: Sequence): Found {
  const tokens = sequence.tokens(0, reusableCount(cells, sequence));
  const match = cells.tree.find(cells.treeKey(sequence.group), tokens);
  if (!match) return null;
  const wholeLength = (length: number): number => sequence.layout?.wholeLength(length) ?? length;
  let best: Prefix | null = null;
  for (const slot of match.slots) {
    const length = wholeLength(Math.min(match.length, computedIn(cells, slot)));
    if (!cells.canCut(slot, length)) continue;
    if (!best || length > best.length) best = { slot, length };
  }
  if (!best) return findState(cells, sequence, tokens, match);
  if (best.length < wholeLength(match.length)) return 'soon';
  return best.length >= (cells.limits.isKvUnified ? 1 : MIN_COPIED_TOKENS) ? best : null;
}

/** Tokens whose cells a slot has filled, if a sequence runs in it; Infinity: all that it is known to hold. */
export function computedIn(cells: Cells, slot: number): number {
  return cells.slot(slot).sequence?.place.computed ?? Infinity;
}

/** For caches that cannot be cut: returns the slot with the most tokens that can be continued as it is or from a checkpoint. */
function findState(
  cells: Cells,
  sequence: Sequence,
  tokens: Int32Array,
  { slots, length }: PrefixMatch,
): Found {
  const key = cells.treeKey(sequence.group);
  const whole = cells.tree.ends(key, tokens).findLast((slot) => cells.slot(slot).state === 'cached');
  let best: Prefix | null = whole === undefined ? null : { slot: whole, length: cells.tree.lengthOf(whole) };
  const kept = cells.checkpoints.find(key, tokens.subarray(0, length));
  if (kept && kept.length > (best?.length ?? 0))
    for (const slot of slots)
      if (canReturn(cells, slot, kept.length)) best = { slot, length: kept.length, checkpoint: kept.number };
  for (const slot of slots) {
    const running = cells.slot(slot).sequence;
    const awaited = running && whatToAwait(cells, sequence, running, best?.length ?? 0, length);
    if (awaited) return awaited;
  }
  return best;
}

/**
 * Returns true if a slot, or a copy of it, can continue from a checkpoint after `length` tokens. A copy to separate cells is made with the
 * next step, which is too late for a checkpoint.
 */
function canReturn(cells: Cells, slot: number, length: number): boolean {
  if (cells.limits.isKvUnified) return computedIn(cells, slot) >= length;
  return cells.slot(slot).sequence === null && !cells.awaitsCopy(slot);
}

/** Returns what a sequence should wait for while a running one computes more of the `shared` tokens, or null if it should not wait. */
function whatToAwait(
  cells: Cells,
  sequence: Sequence,
  running: Sequence,
  found: number,
  shared: number,
): WantedCheckpoint | 'soon' | null {
  const { checkpoints, computed } = running.place;
  if (computed >= shared) return null;
  if (running.group === sequence.group) return sequence.outputCount === 0 ? 'soon' : null;
  const before = Math.max(computed, found);
  if (checkpoints.some((place) => place > before && place <= shared)) return 'soon';
  return isWorthKeeping(cells, running, before, shared) ? { of: running, place: shared } : null;
}
