/**
 * The homes of sequences in the KV cache: who runs where, which slots are kept for their prefix, how many cells are free,
 * and the cache edits that the next step must make first. Integers only; it never touches a tensor.
 */
import { MEMORY_COPY, MEMORY_REMOVE } from '../backends/index.ts';
import { KvLedger } from './kv-ledger.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';

/** Limits and policy of the slots of one context. */
export type SlotOptions = {
  readonly slotCount: number;
  readonly kvTokens: number;
  readonly prefixCache: boolean;
  readonly canCutCache: boolean;
  readonly sharesCells: boolean;
};

/** A slot whose cache begins with `length` tokens that are wanted. */
export type Prefix = { readonly slot: number; readonly length: number };

/** A copied prefix is worth its copy from this length on. */
const MIN_COPIED_TOKENS = 16;

/** The slots of one context. */
export class Slots {
  readonly #options: SlotOptions;
  readonly #ledger: KvLedger;
  readonly #cache = new PrefixCache();
  readonly #running = new Map<number, Sequence>(); // by slot
  readonly #free = new Set<number>();
  readonly #kept = new Set<number>(); // finished, but worth keeping for their prefix; least recently used first
  #edits: number[] = []; // for the next step

  constructor(options: SlotOptions) {
    this.#options = options;
    this.#ledger = new KvLedger(options.kvTokens, options.slotCount, options.sharesCells);
    for (let slot = 0; slot < options.slotCount; slot++) this.#free.add(slot);
  }

  /** Cells that running sequences hold, and all others in use. */
  cells(): { inUse: number; cached: number } {
    const inUse = this.#ledger.usedBy(this.#running.keys());
    return { inUse, cached: this.#ledger.used - inUse };
  }

  get freeCells(): number {
    return this.#ledger.free;
  }

  /** Edits that the next step must make first: (edits, 5), as the backend takes them. They are handed out once. */
  takeEdits(): number[] {
    const edits = this.#edits;
    this.#edits = [];
    return edits;
  }

  /** Frees kept slots other than `except` until so many cells are free. False: there are fewer all the same. */
  makeRoom(cells: number, except = -1): boolean {
    while (this.#ledger.free < cells && this.evict(except));
    return this.#ledger.free >= cells;
  }

  /** Frees the least recently used slot that is kept for its prefix; false when there is none but `except`. */
  evict(except = -1): boolean {
    for (const slot of this.#kept) {
      if (slot === except) continue;
      this.release(slot);
      return true;
    }
    return false;
  }

  /** Gives a running sequence cells for its next tokens. The caller has seen that they are free. */
  append({ slot }: Sequence, count: number): void {
    this.#ledger.append(slot, count);
  }

  /** Whether a running sequence has cells for tokens that are not computed yet. */
  hasUncomputed({ slot, computed }: Sequence): boolean {
    return this.#ledger.lengthOf(slot) > computed;
  }

  /** The slot with most of a sequence's tokens computed; `soon` when a running one is about to have more. */
  findPrefix(sequence: Sequence): Prefix | 'soon' | null {
    if (!this.#options.canCutCache) return null;
    const match = this.#cache.find(
      this.#cacheKey(sequence.group),
      sequence.tokens(0, sequence.reusableCount),
    );
    if (!match) return null;
    let best: Prefix | null = null;
    for (const slot of match.slots) {
      const computed = this.#running.get(slot)?.computed ?? match.length;
      const length = Math.min(match.length, computed);
      if (!best || length > best.length) best = { slot, length };
    }
    if (best!.length < match.length) return 'soon';
    return best!.length >= (this.#options.sharesCells ? 1 : MIN_COPIED_TOKENS) ? best : null;
  }

  /** Gives a sequence a slot and room for all its tokens, sharing a prefix when there is one. False: there is no room. */
  place(sequence: Sequence, prefix: Prefix | null): boolean {
    const { sharesCells } = this.#options;
    const spare = sharesCells ? this.#running.size : 0; // so that those who run need not make room at once
    const needed = sequence.length - (prefix?.length ?? 0) + spare;
    const fits = this.makeRoom(needed, prefix?.slot);
    const slot = this.#pick(prefix?.slot);
    if (prefix && this.#kept.has(prefix.slot) && (slot < 0 || !fits || this.#isBetterMoved(prefix))) {
      this.#kept.delete(prefix.slot);
      this.cut(prefix.slot, prefix.length);
      if (this.#ledger.free < needed && this.#running.size > 0) {
        this.release(prefix.slot);
        return false;
      }
      this.#start(sequence, prefix.slot, prefix.length);
    } else if (slot < 0 || (!fits && this.#running.size > 0)) {
      return false;
    } else {
      this.#take(slot);
      if (prefix) {
        this.#copy(prefix.slot, slot, prefix.length);
        this.#ledger.share(prefix.slot, slot, prefix.length);
        if (this.#kept.delete(prefix.slot)) this.#kept.add(prefix.slot); // most recently used
      }
      this.#start(sequence, slot, prefix?.length ?? 0);
    }
    this.#cache.insert(this.#cacheKey(sequence.group), sequence.slot, sequence.tokens(0, sequence.length));
    return true;
  }

  /** Gives a sequence a slot with what is computed of a running one. False: no slot is free. */
  fork(parent: Sequence, child: Sequence): boolean {
    const slot = this.#takeAny();
    if (slot < 0) return false;
    this.#copy(parent.slot, slot, -1);
    this.#ledger.share(parent.slot, slot, parent.computed);
    this.#start(child, slot, parent.computed);
    return true;
  }

  /**
   * Gives a sequence a slot with the cells of one whose prompt the coming step completes; {@link copyCells} copies what
   * they hold, after it. False: no slot is free.
   */
  forkPrompt(leader: Sequence, sibling: Sequence): boolean {
    const slot = this.#takeAny();
    if (slot < 0) return false;
    this.#ledger.share(leader.slot, slot, leader.length);
    this.#start(sibling, slot, 0);
    return true;
  }

  /** Copies the cells of a running sequence to those of another, before the next step. */
  copyCells(from: Sequence, to: Sequence): void {
    this.#copy(from.slot, to.slot, -1);
  }

  /** Ends a running sequence. Its slot is kept for its prefix when that is worth something, else freed. */
  retire(sequence: Sequence): void {
    const { slot, computed } = sequence;
    if (!this.#options.prefixCache || !this.#options.canCutCache || computed === 0)
      return this.drop(sequence);
    sequence.slot = -1;
    this.#running.delete(slot);
    this.cut(slot, computed);
    this.#cache.insert(this.#cacheKey(sequence.group), slot, sequence.tokens(0, computed));
    this.#kept.add(slot);
    for (const covered of this.#cache.coveredBy(slot)) if (this.#kept.has(covered)) this.release(covered);
    if (this.#cache.isCovered(slot)) this.release(slot);
  }

  /** Ends a running sequence and frees its slot. */
  drop(sequence: Sequence): void {
    const { slot } = sequence;
    sequence.slot = -1;
    this.release(slot);
  }

  /**
   * Makes room for a cache that is loaded from elsewhere, of which the first `kept` tokens will be used by the sequences
   * of a group. Returns its slot and what must be done before the load, or null when there is no room.
   */
  adopt(group: Group, tokens: Int32Array, kept: number): { slot: number; edits: Int32Array } | null {
    const slot = this.makeRoom(tokens.length) ? this.#takeAny() : -1;
    if (slot < 0) return null;
    this.#ledger.append(slot, tokens.length);
    this.#cache.insert(this.#cacheKey(group), slot, tokens.subarray(0, kept));
    this.#kept.add(slot);
    const edits = Int32Array.from(this.takeEdits());
    this.cut(slot, kept);
    return { slot, edits };
  }

  /** Gives up all cells of a slot behind the first `length`. */
  cut(slot: number, length: number): void {
    if (this.#ledger.lengthOf(slot) === length) return;
    this.#ledger.truncate(slot, length);
    this.#edits.push(MEMORY_REMOVE, slot, 0, length, -1);
  }

  /** Frees a slot with all that it holds. */
  release(slot: number): void {
    this.#kept.delete(slot);
    this.#running.delete(slot);
    this.#cache.remove(slot);
    this.#ledger.truncate(slot, 0);
    this.#edits.push(MEMORY_REMOVE, slot, 0, -1, -1);
    this.#free.add(slot);
  }

  #copy(from: number, to: number, length: number): void {
    this.#edits.push(MEMORY_COPY, from, to, 0, length);
  }

  #start(sequence: Sequence, slot: number, computed: number): void {
    this.#running.set(slot, sequence);
    sequence.slot = slot;
    sequence.computed = computed;
    if (sequence.cachedTokens < 0) sequence.cachedTokens = computed;
  }

  /** Whether a sequence should rather move into a kept slot that holds its prefix than share with it: nothing else is lost. */
  #isBetterMoved({ slot, length }: Prefix): boolean {
    const isWhole = length === this.#ledger.lengthOf(slot);
    return isWhole && (this.#options.sharesCells || this.#running.size === 0);
  }

  /** Empties some slot and takes it, or -1. */
  #takeAny(): number {
    const slot = this.#pick();
    if (slot >= 0) this.#take(slot);
    return slot;
  }

  /**
   * A slot for a new sequence, or -1; never `except`. With cells of their own, slots that run should be neighbours: then
   * one beside those that run is picked, even if another's prefix has to go.
   */
  #pick(except = -1): number {
    if (!this.#options.sharesCells && this.#running.size > 0) {
      let beside = -1;
      for (const slot of this.#running.keys())
        for (const candidate of [slot - 1, slot + 1]) {
          if (candidate === except) continue;
          if (this.#free.has(candidate)) return candidate;
          if (this.#kept.has(candidate)) beside = candidate;
        }
      if (beside >= 0) return beside;
    }
    for (const slot of this.#free) return slot;
    for (const slot of this.#kept) if (slot !== except) return slot;
    return -1;
  }

  /** Empties a slot that was picked and takes it out of the free ones. */
  #take(slot: number): void {
    if (this.#kept.has(slot)) this.release(slot);
    this.#free.delete(slot);
  }

  /** Without a prefix cache, sequences still share within their request. */
  #cacheKey({ adapter, cacheKey, arrival }: Group): string {
    return this.#options.prefixCache ? `${adapter} ${cacheKey}` : `request ${arrival}`;
  }
}
