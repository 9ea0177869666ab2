/**
 * The slots of the KV cache: who runs in which, which are cached for their prefix, how many cells are free, and the cache
 * edits that the next step must make first. Integers only; it never touches a tensor.
 */
import { type BackendLimits, MEMORY_COPY, MEMORY_REMOVE } from '../backends/index.ts';
import { KvLedger } from './kv-ledger.ts';
import type { MediaLayout } from './media-layout.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';

/** What the slots depend on of their backend. */
export type SlotLimits = Pick<
  BackendLimits,
  'slotCount' | 'kvTokens' | 'canCutCache' | 'windowTokens' | 'isKvUnified'
>;

/** A slot whose cache begins with `length` tokens that are wanted. */
export type Prefix = { readonly slot: number; readonly length: number };

/** A slot for a cache that is loaded from elsewhere. */
export type Allocation = {
  readonly slot: number;
  readonly edits: Int32Array; // (edits, 5) to be made before the load
};

/** Shorter prefixes are computed again where a copy takes cells. */
const MIN_COPIED_TOKENS = 16;

/** The slots of one context. Each is free, runs a sequence, or is cached for its prefix. */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #prefixCache: boolean;
  readonly #ledger: KvLedger;
  readonly #tree = new PrefixCache();
  readonly #running = new Map<number, Sequence>(); // by slot
  readonly #layouts = new Map<number, MediaLayout>(); // by slot, where its tokens have media
  readonly #free = new Set<number>();
  readonly #cached = new Set<number>(); // least recently used first
  #edits: number[] = []; // for the next step

  constructor(limits: SlotLimits, prefixCache: boolean) {
    this.#limits = limits;
    this.#prefixCache = prefixCache;
    this.#ledger = new KvLedger(limits.kvTokens, limits.slotCount, limits.isKvUnified);
    for (let slot = 0; slot < limits.slotCount; slot++) this.#free.add(slot);
  }

  /** Cells that running sequences hold, and all others in use. */
  cells(): { inUse: number; cached: number } {
    const inUse = this.#ledger.usedBy(this.#running.keys());
    return { inUse, cached: this.#ledger.used - inUse };
  }

  get freeCells(): number {
    return this.#ledger.free;
  }

  /** Edits that the next step must make first: (edits, 5), as the backend takes them. Each is returned once. */
  takeEdits(): number[] {
    const edits = this.#edits;
    this.#edits = [];
    return edits;
  }

  /** The slot with most of a sequence's tokens computed; `soon` when a running one is about to have more. */
  findPrefix(sequence: Sequence): Prefix | 'soon' | null {
    if (!this.#limits.canCutCache) return null;
    const match = this.#tree.find(this.#treeKey(sequence.group), sequence.tokens(0, sequence.reusableCount));
    if (!match) return null;
    const wholeLength = (length: number): number => sequence.layout?.wholeLength(length) ?? length;
    let best: Prefix | null = null;
    for (const slot of match.slots) {
      const computed = this.#running.get(slot)?.computed ?? match.length;
      const length = wholeLength(Math.min(match.length, computed));
      if (!this.canCut(slot, length)) continue;
      if (!best || length > best.length) best = { slot, length };
    }
    if (!best) return null;
    if (best.length < wholeLength(match.length)) return 'soon';
    return best.length >= (this.#limits.isKvUnified ? 1 : MIN_COPIED_TOKENS) ? best : null;
  }

  /** Whether the first `length` tokens of a slot are still whole without the ones behind them. */
  canCut(slot: number, length: number): boolean {
    const { canCutCache, windowTokens } = this.#limits;
    const stored = this.#ledger.lengthOf(slot);
    return canCutCache && (windowTokens === 0 || stored < windowTokens || stored === length);
  }

  /** Starts a sequence in a slot with room for all its tokens, on a prefix if there is one. Returns false if there is no room. */
  start(sequence: Sequence, prefix: Prefix | null): boolean {
    // Under a unified cache, each running sequence needs a cell for its next token.
    const spare = this.#limits.isKvUnified ? this.#running.size : 0;
    const needed = sequence.length - (prefix?.length ?? 0) + spare;
    const fits = this.makeRoom(needed, prefix?.slot);
    const slot = this.#choose(prefix?.slot);
    if (prefix && this.#cached.has(prefix.slot) && (slot < 0 || !fits || this.#isBetterMoved(prefix))) {
      this.#cached.delete(prefix.slot);
      this.truncate(prefix.slot, prefix.length);
      if (this.#ledger.free < needed && this.#running.size > 0) {
        this.free(prefix.slot);
        return false;
      }
      this.#occupy(prefix.slot, sequence, prefix.length);
    } else if (slot < 0 || (!fits && this.#running.size > 0)) {
      return false;
    } else {
      this.#allocate(slot);
      if (prefix) {
        this.#copy(prefix.slot, slot, prefix.length);
        this.#ledger.share(prefix.slot, slot, prefix.length);
        if (this.#cached.delete(prefix.slot)) this.#cached.add(prefix.slot); // most recently used
      }
      this.#occupy(slot, sequence, prefix?.length ?? 0);
    }
    this.#tree.insert(this.#treeKey(sequence.group), sequence.slot, sequence.tokens(0, sequence.length));
    return true;
  }

  /** Starts a fork of a running sequence on a copy of its cache. Returns false if no slot is free. */
  startFork(parent: Sequence, child: Sequence): boolean {
    const slot = this.#allocate();
    if (slot < 0) return false;
    this.#copy(parent.slot, slot, -1);
    this.#ledger.share(parent.slot, slot, parent.computed);
    this.#occupy(slot, child, parent.computed);
    return true;
  }

  /**
   * Starts a sequence on the cells of one whose prompt the coming step completes; {@link copyCells} copies their content
   * after that step. Returns false if no slot is free.
   */
  startSibling(leader: Sequence, sibling: Sequence): boolean {
    const slot = this.#allocate();
    if (slot < 0) return false;
    this.#ledger.share(leader.slot, slot, leader.length);
    this.#occupy(slot, sibling, 0);
    return true;
  }

  /** Copies the cells of a running sequence to those of another, before the next step. */
  copyCells(from: Sequence, to: Sequence): void {
    this.#copy(from.slot, to.slot, -1);
  }

  /** Gives a running sequence cells for its next tokens. The caller has checked that they are free. */
  append({ slot }: Sequence, count: number): void {
    this.#ledger.append(slot, count);
  }

  /**
   * How many of `wanted` further cells a running sequence can have and lose again, when every other one still finds one for
   * its next token.
   */
  roomBehind({ slot }: Sequence, wanted: number): number {
    const { kvTokens, slotCount, isKvUnified, windowTokens } = this.#limits;
    const stored = this.#ledger.lengthOf(slot);
    const inWindow = windowTokens === 0 ? wanted : Math.min(wanted, windowTokens - 1 - stored);
    if (inWindow <= 0) return 0;
    if (!isKvUnified) return Math.min(inWindow, Math.floor(kvTokens / slotCount) - stored);
    this.makeRoom(inWindow + this.#running.size);
    return Math.min(inWindow, this.#ledger.free - this.#running.size);
  }

  /** Whether a running sequence has cells for tokens that are not computed yet. */
  hasUncomputed({ slot, computed }: Sequence): boolean {
    return this.#ledger.lengthOf(slot) > computed;
  }

  /** Ends a running sequence. With `keep`, its slot is cached for its prefix unless other slots make that useless. */
  end(sequence: Sequence, { keep }: { keep: boolean }): void {
    const { slot } = sequence;
    const computed = sequence.layout?.wholeLength(sequence.computed) ?? sequence.computed;
    sequence.slot = -1;
    if (!keep || !this.#prefixCache || !this.#limits.canCutCache || computed === 0) return this.free(slot);
    this.#running.delete(slot);
    this.truncate(slot, computed);
    this.#tree.insert(this.#treeKey(sequence.group), slot, sequence.tokens(0, computed));
    this.#cached.add(slot);
    for (const covered of this.#tree.coveredBy(slot)) if (this.#cached.has(covered)) this.free(covered);
    if (this.#tree.isCovered(slot)) this.free(slot);
  }

  /**
   * Allocates a slot for the cache of `tokens`, of which the sequences of a group will use the first `used`. Returns null
   * if there is no room.
   */
  allocate(group: Group, tokens: Int32Array, used: number): Allocation | null {
    const slot = this.makeRoom(tokens.length) ? this.#allocate() : -1;
    if (slot < 0) return null;
    this.#ledger.append(slot, tokens.length);
    const layout = group.media?.layout;
    const kept = layout?.wholeLength(used) ?? used;
    if (layout) this.#layouts.set(slot, layout);
    this.#tree.insert(this.#treeKey(group), slot, tokens.subarray(0, kept));
    this.#cached.add(slot);
    const edits = Int32Array.from(this.takeEdits());
    this.truncate(slot, kept);
    return { slot, edits };
  }

  /** Frees a slot and all its cells. */
  free(slot: number): void {
    this.#cached.delete(slot);
    this.#running.delete(slot);
    this.#layouts.delete(slot);
    this.#tree.remove(slot);
    this.#ledger.truncate(slot, 0);
    this.#edits.push(MEMORY_REMOVE, slot, 0, -1, -1);
    this.#free.add(slot);
  }

  /** Frees the cells of a slot behind the first `length`. */
  truncate(slot: number, length: number): void {
    if (this.#ledger.lengthOf(slot) === length) return;
    this.#ledger.truncate(slot, length);
    this.#edits.push(MEMORY_REMOVE, slot, 0, this.#positionOf(slot, length), -1);
  }

  /** Frees the cells of a running sequence that are not computed, and of the medium in which it stands. */
  rewind(sequence: Sequence): void {
    sequence.computed = sequence.layout?.wholeLength(sequence.computed) ?? sequence.computed;
    this.truncate(sequence.slot, sequence.computed);
  }

  /** Evicts cached slots other than `except` until so many cells are free. Returns false if that was not enough. */
  makeRoom(cells: number, except = -1): boolean {
    while (this.#ledger.free < cells && this.evict(except));
    return this.#ledger.free >= cells;
  }

  /** Frees the least recently used cached slot other than `except`. Returns false if there is none. */
  evict(except = -1): boolean {
    for (const slot of this.#cached) {
      if (slot === except) continue;
      this.free(slot);
      return true;
    }
    return false;
  }

  /** Chooses a slot unless one is given, evicts it and removes it from the free ones. Returns -1 if there is none. */
  #allocate(slot = this.#choose()): number {
    if (this.#cached.has(slot)) this.free(slot);
    this.#free.delete(slot);
    return slot;
  }

  /**
   * A free or cached slot other than `except`, or -1. A step under a non-unified cache runs fastest on neighbouring slots,
   * so the neighbours of running ones come first there, cached ones included.
   */
  #choose(except = -1): number {
    if (!this.#limits.isKvUnified && this.#running.size > 0) {
      let beside = -1;
      for (const slot of this.#running.keys())
        for (const candidate of [slot - 1, slot + 1]) {
          if (candidate === except) continue;
          if (this.#free.has(candidate)) return candidate;
          if (this.#cached.has(candidate)) beside = candidate;
        }
      if (beside >= 0) return beside;
    }
    for (const slot of this.#free) return slot;
    for (const slot of this.#cached) if (slot !== except) return slot;
    return -1;
  }

  #occupy(slot: number, sequence: Sequence, computed: number): void {
    this.#running.set(slot, sequence);
    if (sequence.layout) this.#layouts.set(slot, sequence.layout);
    else this.#layouts.delete(slot);
    sequence.slot = slot;
    sequence.computed = computed;
    if (sequence.cachedTokens >= 0) return;
    sequence.cachedTokens = computed;
    sequence.onPlaced();
  }

  #copy(from: number, to: number, length: number): void {
    this.#edits.push(MEMORY_COPY, from, to, 0, length < 0 ? -1 : this.#positionOf(from, length));
  }

  /** The position of a slot's token. */
  #positionOf(slot: number, index: number): number {
    return this.#layouts.get(slot)?.positionOf(index) ?? index;
  }

  /** Whether a sequence should occupy the cached slot of its prefix instead of a copy: nothing else is lost. */
  #isBetterMoved({ slot, length }: Prefix): boolean {
    const isWhole = length === this.#ledger.lengthOf(slot);
    return isWhole && (this.#limits.isKvUnified || this.#running.size === 0);
  }

  /** Key of the prefix tree. Without a prefix cache, sequences share prefixes within their request only. */
  #treeKey({ cacheKey, arrival }: Group): string {
    return this.#prefixCache ? cacheKey : `request ${arrival}`;
  }
}
