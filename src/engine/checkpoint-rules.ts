/** Cells and a sequence -> where checkpoints of its cache are taken, and how much of a cache it may reuse. Reads cells, changes nothing. */
import type { Cells } from './cells.ts';
import { MIN_CHECKPOINT_TOKENS } from './checkpoints.ts';
import type { Group, Sequence } from './sequence.ts';

/** Tokens of a prompt that are saved. With recurrent state the last one is not: the sequence that continues needs its logits. */
export function savedLength({ hasState }: Cells, { prompt }: Group): number {
  return hasState ? Math.max(1, prompt.length - 1) : prompt.length;
}

/** Leading tokens that may come from the cache. A prompt that is to be saved continues after them, up to where it is. */
export function reusableCount(cells: Cells, { reusableCount, savedPrompt, group }: Sequence): number {
  return savedPrompt && cells.hasState
    ? Math.min(reusableCount, savedLength(cells, group) - 1)
    : reusableCount;
}

/** Returns true if a checkpoint at `place` is worth its bytes, given one at `before`. */
export function isWorthKeeping(
  { limits }: Cells,
  { layout, reusableCount }: Sequence,
  before: number,
  place: number,
): boolean {
  return (
    place - before >= MIN_CHECKPOINT_TOKENS &&
    place >= limits.windowTokens &&
    place <= reusableCount &&
    (layout?.wholeLength(place) ?? place) === place
  );
}

/** Returns the places of a starting sequence's checkpoints: those of its group, and the one where it diverges from others. */
export function placesFor(cells: Cells, sequence: Sequence): number[] {
  const { group, savedPrompt } = sequence;
  const { computed } = sequence.place;
  const places: number[] = [];
  if (cells.prefixCache && needsCheckpoints(cells)) {
    const shared = cells.tree.find(cells.treeKey(group), sequence.tokens(0, sequence.reusableCount));
    for (const place of [...(group.checkpoints ?? []), shared?.length ?? 0].sort((a, b) => a - b))
      if (isWorthKeeping(cells, sequence, places.at(-1) ?? computed, place)) places.push(place);
  }
  if (savedPrompt && cells.hasState) places.push(savedLength(cells, group));
  for (const place of group.keeper?.places ?? [])
    if (place > computed && place <= sequence.reusableCount && !places.includes(place)) places.push(place);
  return places.sort((a, b) => a - b);
}

/** Returns true if a checkpoint of a running sequence must be taken now. */
export function isCheckpointDue(cells: Cells, sequence: Sequence): boolean {
  const { computed, checkpoints, slot } = sequence.place;
  if (slot < 0 || !checkpoints.includes(computed) || !needsCheckpoints(cells)) return false;
  const kept = cells.checkpoints.find(cells.treeKey(sequence.group), sequence.tokens(0, computed));
  return kept?.length !== computed;
}

/** Returns true if caches cannot be cut everywhere. */
function needsCheckpoints({ hasState, limits }: Cells): boolean {
  return hasState || limits.windowTokens > 0;
}
