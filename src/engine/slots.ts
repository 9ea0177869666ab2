/**
 * The life of a sequence in the KV cache: it starts in a slot, on a prefix if there is one, gets cells, and ends. This is the only file that
 * writes {@link Sequence.place}.
 */
import { PASS_TOKENS } from './backend/index.ts';
import type { Cells } from './cells.ts';
import { placesFor } from './checkpoint-rules.ts';
import { findPrefix, type Prefix } from './prefix-search.ts';
import type { Sequence, SequencePlace } from './sequence.ts';

/** The place of a sequence, to be written. */
function placeOf(sequence: Sequence): SequencePlace {
  return sequence.place;
}

/** Gives slots to sequences, with what is computed of their tokens already. */
export class Slots {
  readonly #cells: Cells;

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  /**
   * Returns the slot with most of a sequence's tokens computed, or `soon` if a running sequence is about to have more. Such a sequence then
   * leaves a checkpoint where this one parts from it.
   */
  findPrefix(sequence: Sequence): Prefix | 'soon' | null {
    const found = findPrefix(this.#cells, sequence);
    if (!found || found === 'soon' || 'slot' in found) return found;
    const running = placeOf(found.of);
    running.checkpoints = [...running.checkpoints, found.place].sort((a, b) => a - b);
    return 'soon';
  }

  /** Starts a sequence in a slot with room for all its tokens, on a prefix if there is one. Returns false if there is no room. */
  start(sequence: Sequence, prefix: Prefix | null): boolean {
    const cells = this.#cells;
    // Under a unified cache, each running sequence needs a cell for its next token.
    const spare = cells.limits.isKvUnified ? cells.runningCount : 0;
    const needed = sequence.length - (prefix?.length ?? 0) + spare;
    const fits = cells.makeRoom(needed, prefix?.slot);
    const slot = cells.choose(prefix?.slot);
    const isCached = prefix !== null && cells.slot(prefix.slot).state === 'cached';
    if (isCached && (slot < 0 || !fits || this.#isBetterMoved(prefix))) {
      cells.restore(prefix.slot, prefix.length, prefix.checkpoint);
      if (cells.freeCells < needed && cells.runningCount > 0) {
        cells.free(prefix.slot);
        return false;
      }
      cells.resume(prefix.slot, sequence);
      this.#occupy(sequence, prefix.slot, prefix.length);
    } else if (slot < 0 || (!fits && cells.runningCount > 0)) {
      return false;
    } else {
      cells.run(slot, sequence);
      if (prefix) {
        cells.copy(prefix.slot, slot, prefix.length);
        cells.share(prefix.slot, slot, prefix.length);
        cells.restore(slot, prefix.length, prefix.checkpoint);
        if (isCached) cells.cache(prefix.slot); // it is the most recently used one now
      }
      this.#occupy(sequence, slot, prefix?.length ?? 0);
    }
    const place = placeOf(sequence);
    place.checkpoints = placesFor(cells, sequence);
    cells.name(place.slot, sequence.group, sequence.tokens(0, sequence.length));
    return true;
  }

  /** Starts a fork of a running sequence on a copy of its cache. Returns false if no slot is free. */
  startFork(parent: Sequence, child: Sequence): boolean {
    const { slot: from, computed } = parent.place;
    const slot = this.#cells.choose();
    if (slot < 0) return false;
    this.#cells.run(slot, child);
    this.#cells.copy(from, slot);
    this.#cells.share(from, slot, computed);
    this.#occupy(child, slot, computed);
    return true;
  }

  /**
   * Starts a sequence on the cells of one whose prompt the coming step completes; {@link Cells.copy} copies their content
   * after that step. Returns false if no slot is free.
   */
  startSibling(leader: Sequence, sibling: Sequence): boolean {
    const slot = this.#cells.choose();
    if (slot < 0) return false;
    this.#cells.run(slot, sibling);
    this.#cells.share(leader.place.slot, slot, leader.length);
    this.#occupy(sibling, slot, 0);
    return true;
  }

  /** Gives a running sequence cells for its next tokens. The caller has checked that they are free. */
  append(sequence: Sequence, count: number): void {
    const place = placeOf(sequence);
    this.#cells.grow(place.slot, place.isAhead ? count - 1 : count);
    place.isAhead = false;
  }

  /** Records that the first `computed` tokens of a running sequence are computed. */
  advance(sequence: Sequence, computed: number): void {
    placeOf(sequence).computed = computed;
  }

  /** Records that the backend has computed, or will, the token that a running sequence samples last. A cell for it is free. */
  runAhead(sequence: Sequence): void {
    this.append(sequence, 1);
    placeOf(sequence).isAhead = true;
  }

  /** Appends a token that was sampled or forced. A draft that was right is computed already. */
  appendToken(sequence: Sequence, token: number): void {
    if (sequence.append(token)) placeOf(sequence).computed += 1;
  }

  /**
   * How many of `wanted` further cells a running sequence can have and lose again, when every other one still finds one for
   * its next token.
   */
  roomBehind({ place }: Sequence, wanted: number): number {
    const cells = this.#cells;
    const { kvTokens, slotCount, batchTokens, isKvUnified, windowTokens, rollbackTokens } = cells.limits;
    const stored = cells.lengthOf(place.slot);
    const isOnePass = isKvUnified && batchTokens <= PASS_TOKENS;
    const inWindow = windowTokens === 0 || isOnePass ? wanted : Math.max(1, windowTokens - 1 - stored);
    const most = Math.min(wanted, rollbackTokens, inWindow);
    if (most <= 0) return 0;
    if (!isKvUnified) return Math.min(most, Math.floor(kvTokens / slotCount) - stored);
    cells.makeRoom(most + cells.runningCount);
    return Math.min(most, cells.freeCells - cells.runningCount);
  }

  /** Returns true if a running sequence has cells for tokens that are not computed yet. */
  hasUncomputed({ place }: Sequence): boolean {
    return !place.isAhead && this.#cells.lengthOf(place.slot) > place.computed;
  }

  /** Undoes the step that has given a running sequence cells. Returns false if its cache cannot be cut back. */
  rewind(sequence: Sequence): boolean {
    const place = placeOf(sequence);
    if (!this.#cells.canCut(place.slot, place.computed)) return false;
    place.computed = sequence.layout?.wholeLength(place.computed) ?? place.computed; // a medium is computed as a whole
    this.#cells.truncate(place.slot, place.computed);
    return true;
  }

  /** Ends a running sequence that will be computed again. Its state is kept for that, unless its cache holds a part of a step. */
  preempt(sequence: Sequence, isBroken: boolean): void {
    this.end(sequence, { keep: this.#cells.hasState && !isBroken });
    placeOf(sequence).computed = 0;
  }

  /** Ends a running sequence. With `keep`, its slot is cached for its prefix unless other slots make that useless. */
  end(sequence: Sequence, { keep }: { keep: boolean }): void {
    const cells = this.#cells;
    const place = placeOf(sequence);
    const { slot } = place;
    const reached = place.computed + (place.isAhead ? 1 : 0);
    const computed = sequence.layout?.wholeLength(reached) ?? reached;
    place.slot = -1;
    place.isAhead = false;
    // A medium cannot be left in its middle, and of a sequence that was taken out the last token is not known.
    const isLost = cells.hasState && (computed < reached || sequence.length < reached);
    if (!keep || !cells.prefixCache || isLost || computed === 0) return cells.free(slot);
    cells.truncate(slot, computed);
    cells.name(slot, { ...sequence.group, skipsCache: false }, sequence.tokens(0, computed));
    cells.cache(slot);
    cells.dropCovered(slot);
  }

  #occupy(sequence: Sequence, slot: number, computed: number): void {
    const place = placeOf(sequence);
    place.slot = slot;
    place.computed = computed;
    if (place.cachedTokens >= 0) return;
    place.cachedTokens = computed;
    sequence.onPlaced();
  }

  /** Returns true if a sequence should take over the cached slot of its prefix rather than copy it: nothing else is lost, or a copy fails. */
  #isBetterMoved({ slot, length, checkpoint }: Prefix): boolean {
    const { isKvUnified } = this.#cells.limits;
    if (!isKvUnified && checkpoint !== undefined) return true;
    return length === this.#cells.lengthOf(slot) && (isKvUnified || this.#cells.runningCount === 0);
  }
}
