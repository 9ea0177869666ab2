/** The slots of the KV cache -> which are free, run or are cached, their cells, and the edits that the next step must make first. */
import { type BackendLimits, MEMORY_COPY, MEMORY_FORGET, MEMORY_REMOVE } from '../backends/index.ts';
import { StateCheckpoints } from './checkpoints.ts';
import { KvLedger } from './kv-ledger.ts';
import type { MediaLayout } from './media-layout.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';

/** What the slots depend on of their backend. */
export type SlotLimits = Pick<
  BackendLimits,
  'slotCount' | 'kvTokens' | 'batchTokens' | 'rollbackTokens' | 'windowTokens' | 'savedWindow' | 'isKvUnified'
>;

/** How prefixes are kept. */
export type PrefixPolicy = {
  /** Whether the cells of sequences that ended are cached for later ones. */
  readonly prefixCache: boolean;
  /** Bytes that checkpoints may take. Default: none are kept. */
  readonly checkpointBytes?: number;
  /** Whether pieces of caches are saved and loaded: that takes a slot. Default false. */
  readonly movesPieces?: boolean;
};

/** Whose cells may be shared. */
export type CellOwner = Pick<Group, 'cacheKey' | 'arrival'>;

/** Whether any tokens of a slot can be copied without those before them. */
function canMovePieces({ isKvUnified, rollbackTokens, savedWindow }: SlotLimits): boolean {
  return isKvUnified && rollbackTokens === Infinity && savedWindow === 0;
}

/** The slots of one context. Each is free, runs a sequence, or is cached for its prefix. */
export class SlotCells {
  protected readonly limits: SlotLimits;
  protected readonly prefixCache: boolean;
  /** Whether no cache can be cut at just any place. */
  protected readonly hasState: boolean;
  protected readonly checkpoints: StateCheckpoints;
  protected readonly ledger: KvLedger;
  protected readonly tree = new PrefixCache();
  protected readonly running = new Map<number, Sequence>(); // by slot
  protected readonly cached = new Set<number>(); // least recently used first
  protected readonly loaded = new Map<number, number>(); // by slot, where not all cells are: tokens that it cannot be cut below
  protected readonly layouts = new Map<number, MediaLayout>(); // by slot, where its tokens have media
  protected readonly spare: number; // holds a piece of a cache on its way, and nothing between steps; -1: there is none
  protected edits: number[] = []; // for the next step
  readonly #free = new Set<number>();

  constructor(limits: SlotLimits, { prefixCache, checkpointBytes = 0, movesPieces = false }: PrefixPolicy) {
    this.limits = limits;
    this.prefixCache = prefixCache;
    this.hasState = limits.rollbackTokens !== Infinity;
    this.checkpoints = new StateCheckpoints(checkpointBytes);
    this.ledger = new KvLedger(limits.kvTokens, limits.slotCount, limits.isKvUnified);
    this.spare = movesPieces && canMovePieces(limits) ? limits.slotCount - 1 : -1;
    for (let slot = 0; slot < limits.slotCount; slot++) if (slot !== this.spare) this.#free.add(slot);
  }

  /** Whether caches are saved and loaded in pieces; else as a whole. */
  get movesPieces(): boolean {
    return this.spare >= 0;
  }

  /** Cells that running sequences hold, and all others in use. */
  cells(): { inUse: number; cached: number } {
    const inUse = this.ledger.usedBy(this.running.keys());
    return { inUse, cached: this.ledger.used - inUse };
  }

  get freeCells(): number {
    return this.ledger.free;
  }

  /** Edits that the next step must make first: (edits, 5), as the backend takes them. Each is returned once. */
  takeEdits(): number[] {
    const edits = this.edits;
    this.edits = [];
    return edits;
  }

  /** Whether the first `length` tokens of a slot are still whole without the ones behind them. */
  canCut(slot: number, length: number): boolean {
    const { windowTokens } = this.limits;
    const stored = this.ledger.lengthOf(slot);
    if (length < (this.loaded.get(slot) ?? 0)) return false;
    return !this.hasState && (windowTokens === 0 || stored < windowTokens || stored === length);
  }

  /** Tokens of a prompt that are saved: with recurrent state not the last one, as its logits are needed by who continues. */
  savedLength({ prompt }: Group): number {
    return this.hasState ? Math.max(1, prompt.length - 1) : prompt.length;
  }

  /** Frees a slot and all its cells. */
  free(slot: number): void {
    this.cached.delete(slot);
    this.running.delete(slot);
    this.layouts.delete(slot);
    this.loaded.delete(slot);
    this.tree.remove(slot);
    this.ledger.truncate(slot, 0);
    this.edits.push(MEMORY_REMOVE, slot, 0, -1, -1);
    this.#free.add(slot);
    if (this.checkpoints.size > 0)
      this.forget(
        this.checkpoints.dropUnless((key, tokens) => this.tree.find(key, tokens)?.length === tokens.length),
      );
  }

  /** Frees the cells of a slot behind the first `length`. */
  truncate(slot: number, length: number): void {
    if (this.ledger.lengthOf(slot) === length) return;
    this.ledger.truncate(slot, length);
    this.edits.push(MEMORY_REMOVE, slot, 0, this.positionOf(slot, length), -1);
  }

  /** Evicts cached slots other than `except` until this many cells are free. Returns false if that was not enough. */
  makeRoom(cells: number, except = -1): boolean {
    while (this.ledger.free < cells && this.evict(except));
    return this.ledger.free >= cells;
  }

  /** Frees the least recently used cached slot other than `except`. Returns false if there is none. */
  evict(except = -1): boolean {
    for (const slot of this.cached) {
      if (slot === except) continue;
      this.free(slot);
      return true;
    }
    return false;
  }

  /** Chooses a slot unless one is given, evicts it and removes it from the free ones. Returns -1 if there is none. */
  protected takeSlot(slot = this.choose()): number {
    if (this.cached.has(slot)) this.free(slot);
    this.#free.delete(slot);
    return slot;
  }

  /**
   * A free or cached slot other than `except`, or -1. A step under a non-unified cache runs fastest on neighbouring slots,
   * so the neighbours of running ones come first there, cached ones included.
   */
  protected choose(except = -1): number {
    if (!this.limits.isKvUnified && this.running.size > 0) {
      let beside = -1;
      for (const slot of this.running.keys())
        for (const candidate of [slot - 1, slot + 1]) {
          if (candidate === except) continue;
          if (this.#free.has(candidate)) return candidate;
          if (this.cached.has(candidate)) beside = candidate;
        }
      if (beside >= 0) return beside;
    }
    for (const slot of this.#free) return slot;
    for (const slot of this.cached) if (slot !== except) return slot;
    return -1;
  }

  protected occupy(slot: number, sequence: Sequence, computed: number): void {
    this.running.set(slot, sequence);
    if (sequence.layout) this.layouts.set(slot, sequence.layout);
    else this.layouts.delete(slot);
    sequence.slot = slot;
    sequence.computed = computed;
    if (sequence.cachedTokens >= 0) return;
    sequence.cachedTokens = computed;
    sequence.onPlaced();
  }

  protected copy(from: number, to: number, length: number): void {
    const loaded = this.loaded.get(from);
    if (loaded !== undefined) this.loaded.set(to, loaded);
    this.edits.push(MEMORY_COPY, from, to, 0, length < 0 ? -1 : this.positionOf(from, length));
  }

  /** The position of a slot's token. */
  protected positionOf(slot: number, index: number): number {
    return this.layouts.get(slot)?.positionOf(index) ?? index;
  }

  protected forget(numbers: readonly number[]): void {
    for (const number of numbers) this.edits.push(MEMORY_FORGET, 0, number, 0, 0);
  }

  /** Key of the prefix tree. Without a prefix cache, sequences share prefixes within their request only. */
  protected treeKey({ cacheKey, arrival }: CellOwner): string {
    return this.prefixCache ? cacheKey : `request ${arrival}`;
  }
}
