/** Saved caches and pieces of caches <-> slots: where they are loaded to and saved from, between two steps. */
import type { CellOwner, Cells } from './cells.ts';
import { computedIn } from './prefix-search.ts';
import type { Group } from './sequence.ts';

/** A slot for a cache that is loaded from elsewhere, or saved. */
export type Allocation = {
  readonly slot: number;
  readonly edits: Int32Array; // (edits, 5) to be made before
};

/**
 * Allocates a slot for the cache of `tokens`, of which the sequences of a group will use the first `used`. Returns null
 * if there is no room.
 */
export function allocate(cells: Cells, group: Group, tokens: Int32Array, used: number): Allocation | null {
  const { savedWindow } = cells.limits;
  const layout = group.media?.layout ?? null;
  const kept = layout?.wholeLength(used) ?? used;
  const isInPart = savedWindow > 0 && tokens.length > savedWindow;
  if ((cells.hasState && used < tokens.length) || (isInPart && kept < tokens.length - 1)) return null;
  const slot = cells.makeRoom(tokens.length) ? cells.choose() : -1;
  if (slot < 0) return null;
  if (cells.slot(slot).state === 'cached') cells.free(slot);
  cells.load(slot, tokens.length, layout, isInPart ? kept : 0);
  cells.name(slot, group, tokens.subarray(0, kept));
  cells.cache(slot);
  const edits = Int32Array.from(cells.takeEdits());
  cells.truncate(slot, kept);
  return { slot, edits };
}

/** Leading tokens of these that a slot holds. */
export function cachedTokens(cells: Cells, owner: CellOwner, tokens: Int32Array): number {
  return cells.tree.find(cells.treeKey(owner), tokens)?.length ?? 0;
}

/** The spare slot with the cells of `tokens` from `from` on, if some slot holds all of them, else null. */
export function lend(cells: Cells, owner: CellOwner, tokens: Int32Array, from: number): Allocation | null {
  const match = cells.tree.find(cells.treeKey(owner), tokens);
  if (!match || match.length < tokens.length) return null;
  for (const slot of match.slots) {
    if (computedIn(cells, slot) < tokens.length) continue;
    cells.copyPiece(slot, cells.spare, from, tokens.length);
    const edits = Int32Array.from(cells.takeEdits());
    cells.clear(cells.spare);
    return { slot: cells.spare, edits };
  }
  return null;
}

/**
 * Lengthens the cached slot that ends with the first `from` of these tokens by the others, which are loaded into the spare slot. Returns
 * null if there is none, or no room.
 */
export function extend(
  cells: Cells,
  owner: CellOwner,
  tokens: Int32Array,
  from: number,
): (Allocation & { undo(): void }) | null {
  const before = tokens.subarray(0, from);
  const slot = cells.tree
    .ends(cells.treeKey(owner), before)
    .findLast((end) => cells.slot(end).state === 'cached' && cells.tree.lengthOf(end) === from);
  if (slot === undefined || !cells.makeRoom(tokens.length - from, slot)) return null;
  cells.grow(slot, tokens.length - from);
  cells.name(slot, owner, tokens);
  const edits = Int32Array.from(cells.takeEdits());
  cells.copyPiece(cells.spare, slot, from, tokens.length);
  cells.clear(cells.spare);
  const undo = (): void => {
    cells.truncate(slot, from);
    cells.name(slot, owner, before);
  };
  return { slot: cells.spare, edits, undo };
}
