/**
 * Who runs in which slot of the KV cache, on which prefix, and how prefixes, pieces and checkpoints are kept for later ones.
 * Integers only; it never touches a tensor.
 */
import { MEMORY_COPY, MEMORY_REMOVE, MEMORY_RESTORE, PASS_TOKENS } from '../backends/index.ts';
import { MIN_CHECKPOINT_TOKENS } from './checkpoints.ts';
import type { PrefixMatch } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';
import { type CellOwner, SlotCells } from './slot-cells.ts';

/** A slot whose cache begins with `length` tokens that are wanted. */
export type Prefix = {
  readonly slot: number;
  readonly length: number;
  /** Number of the checkpoint behind these tokens, where the slot alone cannot be cut to them. */
  readonly checkpoint?: number;
};

/** A slot for a cache that is loaded from elsewhere, or saved. */
export type Allocation = {
  readonly slot: number;
  readonly edits: Int32Array; // (edits, 5) to be made before
};

/** Shorter prefixes are computed again where a copy takes cells. */
const MIN_COPIED_TOKENS = 16;

/** Gives slots to sequences, with what is computed of their tokens already. */
export class Slots extends SlotCells {
  /** The slot with most of a sequence's tokens computed; `soon` when a running one is about to have more. */
  findPrefix(sequence: Sequence): Prefix | 'soon' | null {
    const tokens = sequence.tokens(0, this.#reusableCount(sequence));
    const match = this.tree.find(this.treeKey(sequence.group), tokens);
    if (!match) return null;
    const wholeLength = (length: number): number => sequence.layout?.wholeLength(length) ?? length;
    let best: Prefix | null = null;
    for (const slot of match.slots) {
      const computed = this.running.get(slot)?.computed ?? match.length;
      const length = wholeLength(Math.min(match.length, computed));
      if (!this.canCut(slot, length)) continue;
      if (!best || length > best.length) best = { slot, length };
    }
    if (!best) return this.#findState(sequence, tokens, match);
    if (best.length < wholeLength(match.length)) return 'soon';
    return best.length >= (this.limits.isKvUnified ? 1 : MIN_COPIED_TOKENS) ? best : null;
  }

  /** Leading tokens that may come from the cache. A prompt that is to be saved continues after them, up to where it is. */
  #reusableCount(sequence: Sequence): number {
    const { reusableCount, savedPrompt, group } = sequence;
    return savedPrompt && this.hasState
      ? Math.min(reusableCount, this.savedLength(group) - 1)
      : reusableCount;
  }

  /** Where a cache cannot be cut: the slot that can be continued as it is or from a checkpoint, with most of the tokens. */
  #findState(sequence: Sequence, tokens: Int32Array, { slots, length }: PrefixMatch): Prefix | 'soon' | null {
    const key = this.treeKey(sequence.group);
    const whole = this.tree.ends(key, tokens).findLast((slot) => this.cached.has(slot));
    let best: Prefix | null = whole === undefined ? null : { slot: whole, length: this.tree.lengthOf(whole) };
    const kept = this.checkpoints.find(key, tokens.subarray(0, length));
    if (kept && kept.length > (best?.length ?? 0))
      for (const slot of slots)
        if (this.#canReturn(slot, kept.length)) best = { slot, length: kept.length, checkpoint: kept.number };
    for (const slot of slots) {
      const running = this.running.get(slot);
      if (running && this.#awaits(sequence, running, best?.length ?? 0, length)) return 'soon';
    }
    return best;
  }

  /**
   * Whether a slot, or a copy of it, can go on from a checkpoint behind `length` tokens. A copy to cells of its own is made with the next
   * step, too late to put a checkpoint into them.
   */
  #canReturn(slot: number, length: number): boolean {
    const running = this.running.get(slot);
    if (this.limits.isKvUnified) return !running || running.computed >= length;
    return (
      !running &&
      !this.edits.some((kind, i) => i % 5 === 0 && kind === MEMORY_COPY && this.edits[i + 2] === slot)
    );
  }

  /** Whether a sequence should wait until a running one has computed more of the `shared` tokens: there will be a checkpoint. */
  #awaits(sequence: Sequence, running: Sequence, found: number, shared: number): boolean {
    if (running.computed >= shared) return false;
    if (running.group === sequence.group) return sequence.outputCount === 0;
    const { checkpoints, computed } = running;
    if (checkpoints.some((place) => place > Math.max(computed, found) && place <= shared)) return true;
    if (!this.#isWorthKeeping(running, Math.max(computed, found), shared)) return false;
    running.checkpoints = [...checkpoints, shared].sort((a, b) => a - b);
    return true;
  }

  /** Whether a checkpoint of a sequence is worth its bytes at a place, if there is one `before` it. */
  #isWorthKeeping({ layout, reusableCount }: Sequence, before: number, place: number): boolean {
    return (
      place - before >= MIN_CHECKPOINT_TOKENS &&
      place >= this.limits.windowTokens &&
      place <= reusableCount &&
      (layout?.wholeLength(place) ?? place) === place
    );
  }

  /** Where a sequence that starts will have checkpoints: where its group wants them, and where it parts from others. */
  #placesFor(sequence: Sequence): number[] {
    const { group, savedPrompt, computed } = sequence;
    const places: number[] = [];
    if (this.prefixCache && (this.hasState || this.limits.windowTokens > 0)) {
      const shared = this.tree.find(this.treeKey(group), sequence.tokens(0, sequence.reusableCount));
      for (const place of [...(group.checkpoints ?? []), shared?.length ?? 0].sort((a, b) => a - b))
        if (this.#isWorthKeeping(sequence, places.at(-1) ?? computed, place)) places.push(place);
    }
    if (savedPrompt && this.hasState) places.push(this.savedLength(group));
    for (const place of group.keeper?.places ?? [])
      if (place > computed && place <= sequence.reusableCount && !places.includes(place)) places.push(place);
    return places.sort((a, b) => a - b);
  }

  /** The number of the checkpoint that is to be taken of a running sequence now, or null. */
  dueCheckpoint(sequence: Sequence): number | null {
    const { computed, checkpoints, group, slot } = sequence;
    if (slot < 0 || !checkpoints.includes(computed)) return null;
    if (!this.hasState && this.limits.windowTokens === 0) return null;
    const kept = this.checkpoints.find(this.treeKey(group), sequence.tokens(0, computed));
    return kept?.length === computed ? null : this.checkpoints.begin();
  }

  /** Keeps a checkpoint that was taken of a running sequence. */
  keepCheckpoint(sequence: Sequence, number: number, bytes: number): void {
    const tokens = sequence.tokens(0, sequence.computed).slice();
    this.forget(this.checkpoints.add(number, this.treeKey(sequence.group), tokens, bytes));
  }

  /** Starts a sequence in a slot with room for all its tokens, on a prefix if there is one. Returns false if there is no room. */
  start(sequence: Sequence, prefix: Prefix | null): boolean {
    // Under a unified cache, each running sequence needs a cell for its next token.
    const spare = this.limits.isKvUnified ? this.running.size : 0;
    const needed = sequence.length - (prefix?.length ?? 0) + spare;
    const fits = this.makeRoom(needed, prefix?.slot);
    const slot = this.choose(prefix?.slot);
    if (prefix && this.cached.has(prefix.slot) && (slot < 0 || !fits || this.#isBetterMoved(prefix))) {
      this.cached.delete(prefix.slot);
      this.#return(prefix, prefix.slot);
      if (this.ledger.free < needed && this.running.size > 0) {
        this.free(prefix.slot);
        return false;
      }
      this.occupy(prefix.slot, sequence, prefix.length);
    } else if (slot < 0 || (!fits && this.running.size > 0)) {
      return false;
    } else {
      this.takeSlot(slot);
      if (prefix) {
        this.copy(prefix.slot, slot, prefix.length);
        this.ledger.share(prefix.slot, slot, prefix.length);
        this.#return(prefix, slot);
        if (this.cached.delete(prefix.slot)) this.cached.add(prefix.slot); // most recently used
      }
      this.occupy(slot, sequence, prefix?.length ?? 0);
    }
    sequence.checkpoints = this.#placesFor(sequence);
    this.tree.insert(this.treeKey(sequence.group), sequence.slot, sequence.tokens(0, sequence.length));
    return true;
  }

  /** Returns a slot to the end of a prefix that it holds. */
  #return({ length, checkpoint }: Prefix, slot: number): void {
    if (checkpoint === undefined) return this.truncate(slot, length);
    this.checkpoints.touch(checkpoint);
    this.ledger.truncate(slot, length);
    this.edits.push(MEMORY_RESTORE, slot, checkpoint, this.positionOf(slot, length), -1);
  }

  /** Starts a fork of a running sequence on a copy of its cache. Returns false if no slot is free. */
  startFork(parent: Sequence, child: Sequence): boolean {
    const slot = this.takeSlot();
    if (slot < 0) return false;
    this.copy(parent.slot, slot, -1);
    this.ledger.share(parent.slot, slot, parent.computed);
    this.occupy(slot, child, parent.computed);
    return true;
  }

  /**
   * Starts a sequence on the cells of one whose prompt the coming step completes; {@link copyCells} copies their content
   * after that step. Returns false if no slot is free.
   */
  startSibling(leader: Sequence, sibling: Sequence): boolean {
    const slot = this.takeSlot();
    if (slot < 0) return false;
    this.ledger.share(leader.slot, slot, leader.length);
    this.occupy(slot, sibling, 0);
    return true;
  }

  /** Copies the cells of a running sequence to those of another, before the next step. */
  copyCells(from: Sequence, to: Sequence): void {
    this.copy(from.slot, to.slot, -1);
  }

  /** Gives a running sequence cells for its next tokens. The caller has checked that they are free. */
  append(sequence: Sequence, count: number): void {
    this.ledger.append(sequence.slot, sequence.isAhead ? count - 1 : count);
    sequence.isAhead = false;
  }

  /** Records that the backend has computed, or will, the token that a running sequence samples last. A cell for it is free. */
  runAhead(sequence: Sequence): void {
    this.append(sequence, 1);
    sequence.isAhead = true;
  }

  /**
   * How many of `wanted` further cells a running sequence can have and lose again, when every other one still finds one for
   * its next token.
   */
  roomBehind({ slot }: Sequence, wanted: number): number {
    const { kvTokens, slotCount, batchTokens, isKvUnified, windowTokens, rollbackTokens } = this.limits;
    const stored = this.ledger.lengthOf(slot);
    const isOnePass = isKvUnified && batchTokens <= PASS_TOKENS;
    const inWindow = windowTokens === 0 || isOnePass ? wanted : Math.max(1, windowTokens - 1 - stored);
    const most = Math.min(wanted, rollbackTokens, inWindow);
    if (most <= 0) return 0;
    if (!isKvUnified) return Math.min(most, Math.floor(kvTokens / slotCount) - stored);
    this.makeRoom(most + this.running.size);
    return Math.min(most, this.ledger.free - this.running.size);
  }

  /** Whether a running sequence has cells for tokens that are not computed yet. */
  hasUncomputed({ slot, computed, isAhead }: Sequence): boolean {
    return !isAhead && this.ledger.lengthOf(slot) > computed;
  }

  /** Ends a running sequence. With `keep`, its slot is cached for its prefix unless other slots make that useless. */
  end(sequence: Sequence, { keep }: { keep: boolean }): void {
    const { slot, isAhead } = sequence;
    const reached = sequence.computed + (isAhead ? 1 : 0);
    const computed = sequence.layout?.wholeLength(reached) ?? reached;
    sequence.slot = -1;
    sequence.isAhead = false;
    // A medium cannot be left in its middle, and of a sequence that was taken out the last token is not known.
    const isLost = this.hasState && (computed < reached || sequence.length < reached);
    if (!keep || !this.prefixCache || isLost || computed === 0) return this.free(slot);
    this.running.delete(slot);
    this.truncate(slot, computed);
    this.tree.insert(this.treeKey(sequence.group), slot, sequence.tokens(0, computed));
    this.cached.add(slot);
    for (const covered of this.tree.coveredBy(slot)) if (this.cached.has(covered)) this.free(covered);
    if (this.tree.isCovered(slot)) this.free(slot);
  }

  /**
   * Allocates a slot for the cache of `tokens`, of which the sequences of a group will use the first `used`. Returns null
   * if there is no room.
   */
  allocate(group: Group, tokens: Int32Array, used: number): Allocation | null {
    const layout = group.media?.layout;
    const kept = layout?.wholeLength(used) ?? used;
    const isInPart = this.limits.savedWindow > 0 && tokens.length > this.limits.savedWindow;
    if ((this.hasState && used < tokens.length) || (isInPart && kept < tokens.length - 1)) return null;
    const slot = this.makeRoom(tokens.length) ? this.takeSlot() : -1;
    if (slot < 0) return null;
    this.ledger.append(slot, tokens.length);
    if (layout) this.layouts.set(slot, layout);
    if (isInPart) this.loaded.set(slot, kept);
    this.tree.insert(this.treeKey(group), slot, tokens.subarray(0, kept));
    this.cached.add(slot);
    const edits = Int32Array.from(this.takeEdits());
    this.truncate(slot, kept);
    return { slot, edits };
  }

  /** Leading tokens of these that a slot holds. */
  cachedTokens(owner: CellOwner, tokens: Int32Array): number {
    return this.tree.find(this.treeKey(owner), tokens)?.length ?? 0;
  }

  /** The spare slot with the cells of `tokens` from `from` on, if some slot holds all of them, else null. */
  lend(owner: CellOwner, tokens: Int32Array, from: number): Allocation | null {
    const match = this.tree.find(this.treeKey(owner), tokens);
    if (!match || match.length < tokens.length) return null;
    for (const slot of match.slots) {
      if ((this.running.get(slot)?.computed ?? tokens.length) < tokens.length) continue;
      this.edits.push(MEMORY_COPY, slot, this.spare, from, tokens.length);
      const edits = Int32Array.from(this.takeEdits());
      this.edits.push(MEMORY_REMOVE, this.spare, 0, -1, -1);
      return { slot: this.spare, edits };
    }
    return null;
  }

  /**
   * Lengthens the cached slot that ends with the first `from` of these tokens by the others, which are loaded into the spare slot. Returns
   * null if there is none, or no room.
   */
  extend(owner: CellOwner, tokens: Int32Array, from: number): (Allocation & { undo(): void }) | null {
    const key = this.treeKey(owner);
    const slot = this.tree
      .ends(key, tokens.subarray(0, from))
      .findLast((end) => this.cached.has(end) && this.tree.lengthOf(end) === from);
    if (slot === undefined || !this.makeRoom(tokens.length - from, slot)) return null;
    this.ledger.append(slot, tokens.length - from);
    this.tree.insert(key, slot, tokens);
    const edits = Int32Array.from(this.takeEdits());
    this.edits.push(MEMORY_COPY, this.spare, slot, from, tokens.length);
    this.edits.push(MEMORY_REMOVE, this.spare, 0, -1, -1);
    const undo = (): void => {
      this.truncate(slot, from);
      this.tree.insert(key, slot, tokens.subarray(0, from));
    };
    return { slot: this.spare, edits, undo };
  }

  /** Frees the cells of a running sequence that are not computed, and of the medium in which it stands. */
  rewind(sequence: Sequence): void {
    sequence.computed = sequence.layout?.wholeLength(sequence.computed) ?? sequence.computed;
    this.truncate(sequence.slot, sequence.computed);
  }

  /** Whether a sequence should occupy the cached slot of its prefix instead of a copy: nothing else is lost, or only it can go on. */
  #isBetterMoved({ slot, length, checkpoint }: Prefix): boolean {
    if (!this.limits.isKvUnified && checkpoint !== undefined) return true;
    const isWhole = length === this.ledger.lengthOf(slot);
    return isWhole && (this.limits.isKvUnified || this.running.size === 0);
  }
}
