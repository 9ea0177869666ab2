/**
 * Slots of the KV cache and their cells -> what each slot holds, and the edits of the cache that the next step makes first. All changes of
 * cells go through this class. Integers only; it never touches a tensor.
 */
import {
  type BackendLimits,
  MEMORY_COPY,
  MEMORY_FORGET,
  MEMORY_REMOVE,
  MEMORY_RESTORE,
} from './backend/index.ts';
import { StateCheckpoints } from './checkpoints.ts';
import { KvLedger } from './kv-ledger.ts';
import type { MediaLayout } from './media-layout.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';

/** The limits of the backend that the slots depend on. */
export type SlotLimits = Pick<
  BackendLimits,
  'slotCount' | 'kvTokens' | 'batchTokens' | 'rollbackTokens' | 'windowTokens' | 'savedWindow' | 'isKvUnified'
>;

/** Settings of the prefix cache. */
export type PrefixPolicy = {
  /** True if the cells of finished sequences are cached for later ones. */
  readonly prefixCache: boolean;
  /** Bytes that checkpoints may take. Default: none are kept. */
  readonly checkpointBytes?: number;
  /** True if pieces of caches are saved and loaded, which takes a slot. Default false. */
  readonly movesPieces?: boolean;
};

/** Key of a sequence's owner. Only sequences with the same key share cached prefixes. */
export type CellOwner = Pick<Group, 'cacheKey' | 'arrival' | 'skipsCache'>;

/** A slot is free, runs a sequence, or is cached for its tokens. The spare slot holds a piece of a cache during a move. */
export type SlotState = 'free' | 'running' | 'cached' | 'spare';

/** One slot. */
export type Slot = {
  readonly number: number;
  state: SlotState;
  /** The sequence that runs in it, else null. */
  sequence: Sequence | null;
  /** Minimum number of tokens after a cut. Cells of earlier tokens were not all loaded. */
  minCut: number;
  /** The media in its tokens, or null if there are none. */
  layout: MediaLayout | null;
};

/** Returns true if any tokens of a slot can be copied without those before them. */
function canMovePieces({ isKvUnified, rollbackTokens, savedWindow }: SlotLimits): boolean {
  return isKvUnified && rollbackTokens === Infinity && savedWindow === 0;
}

/** The slots of one context. */
export class Cells {
  readonly limits: SlotLimits;
  readonly prefixCache: boolean;
  /** True if caches cannot be cut at arbitrary places. */
  readonly hasState: boolean;
  /** Number of the spare slot, which is empty between steps, or -1 if there is none. */
  readonly spare: number;
  /** The tokens of each slot. */
  readonly tree: Pick<PrefixCache, 'find' | 'ends' | 'lengthOf'>;
  /** The kept checkpoints. */
  readonly checkpoints: Pick<StateCheckpoints, 'find' | 'begin'>;
  readonly #tree = new PrefixCache();
  readonly #checkpoints: StateCheckpoints;
  readonly #ledger: KvLedger;
  readonly #slots: readonly Slot[];
  readonly #by: Readonly<Record<SlotState, Set<Slot>>> = {
    free: new Set(), // longest free first
    running: new Set(), // longest running first
    cached: new Set(), // least recently used first
    spare: new Set(),
  };
  #edits: number[] = []; // for the next step

  constructor(limits: SlotLimits, { prefixCache, checkpointBytes = 0, movesPieces = false }: PrefixPolicy) {
    this.limits = limits;
    this.prefixCache = prefixCache;
    this.hasState = limits.rollbackTokens !== Infinity;
    this.tree = this.#tree;
    this.#checkpoints = new StateCheckpoints(checkpointBytes);
    this.checkpoints = this.#checkpoints;
    this.#ledger = new KvLedger(limits.kvTokens, limits.slotCount, limits.isKvUnified);
    this.spare = movesPieces && canMovePieces(limits) ? limits.slotCount - 1 : -1;
    this.#slots = Array.from({ length: limits.slotCount }, (_, number): Slot => {
      const state = number === this.spare ? 'spare' : 'free';
      return { number, state, sequence: null, minCut: 0, layout: null };
    });
    for (const slot of this.#slots) this.#by[slot.state].add(slot);
  }

  /** Cells that running sequences hold, and all others in use. */
  usage(): { inUse: number; cached: number } {
    const inUse = this.#ledger.usedBy(Array.from(this.#by.running, ({ number }) => number));
    return { inUse, cached: this.#ledger.used - inUse };
  }

  get freeCells(): number {
    return this.#ledger.free;
  }

  /** Slots that run a sequence. */
  get runningCount(): number {
    return this.#by.running.size;
  }

  slot(number: number): Readonly<Slot> {
    return this.#slots[number]!;
  }

  /** Cells that a slot holds, shared ones included. */
  lengthOf(number: number): number {
    return this.#ledger.lengthOf(number);
  }

  /** Returns true if the first `length` tokens of a slot remain complete when the later ones are cut. */
  canCut(number: number, length: number): boolean {
    const { windowTokens } = this.limits;
    const stored = this.lengthOf(number);
    if (length < this.slot(number).minCut) return false;
    return !this.hasState && (windowTokens === 0 || stored < windowTokens || stored === length);
  }

  /** Returns true if the next step copies cells into a slot before it computes. */
  awaitsCopy(number: number): boolean {
    const edits = this.#edits;
    return edits.some((kind, i) => i % 5 === 0 && kind === MEMORY_COPY && edits[i + 2] === number);
  }

  /** Key of the prefix tree. Sequences share prefixes within their request only if there is no prefix cache, or the request skips it. */
  treeKey({ cacheKey, arrival, skipsCache }: CellOwner): string {
    return this.prefixCache && !skipsCache ? cacheKey : `request ${arrival}`;
  }

  /** Edits that the next step must make first: (edits, 5), as the backend takes them. Each is returned once. */
  takeEdits(): number[] {
    const edits = this.#edits;
    this.#edits = [];
    return edits;
  }

  /**
   * A free or cached slot other than `except`, or -1. A step under a non-unified cache runs fastest on neighbouring slots,
   * so the neighbours of running ones come first there, cached ones included.
   */
  choose(except = -1): number {
    if (!this.limits.isKvUnified) {
      let beside = -1;
      for (const { number } of this.#by.running)
        for (const candidate of [number - 1, number + 1]) {
          const state = candidate === except ? undefined : this.#slots[candidate]?.state;
          if (state === 'free') return candidate;
          if (state === 'cached') beside = candidate;
        }
      if (beside >= 0) return beside;
    }
    for (const { number } of this.#by.free) return number;
    for (const { number } of this.#by.cached) if (number !== except) return number;
    return -1;
  }

  /** Empties a chosen slot, and runs a sequence in it. */
  run(number: number, sequence: Sequence): void {
    if (this.slot(number).state === 'cached') this.free(number);
    this.resume(number, sequence);
  }

  /** Runs a sequence on what a slot holds. */
  resume(number: number, sequence: Sequence): void {
    this.#move(number, 'running').sequence = sequence;
    this.#slots[number]!.layout = sequence.layout;
  }

  /** Caches what a slot holds, as the most recently used one. */
  cache(number: number): void {
    this.#move(number, 'cached').sequence = null;
  }

  /** Frees cached slots whose tokens another slot holds as well, this one or a longer one. */
  dropCovered(number: number): void {
    for (const covered of this.#tree.coveredBy(number))
      if (this.slot(covered).state === 'cached') this.free(covered);
    if (this.#tree.isCovered(number)) this.free(number);
  }

  /** Frees a slot and all its cells. */
  free(number: number): void {
    Object.assign(this.#move(number, 'free'), { sequence: null, minCut: 0, layout: null });
    this.#tree.remove(number);
    this.#ledger.truncate(number, 0);
    this.clear(number);
    if (this.#checkpoints.size > 0)
      this.#forget(
        this.#checkpoints.dropUnless((key, tokens) => this.tree.find(key, tokens)?.length === tokens.length),
      );
  }

  /** Records the tokens that a slot holds or will hold soon. */
  name(number: number, owner: CellOwner, tokens: Int32Array): void {
    this.#tree.insert(this.treeKey(owner), number, tokens);
  }

  /** Adds cells to a slot. The caller has checked that they are free. */
  grow(number: number, count: number): void {
    this.#ledger.append(number, count);
  }

  /** Frees the cells of a slot behind the first `length`. */
  truncate(number: number, length: number): void {
    if (this.lengthOf(number) === length) return;
    this.#ledger.truncate(number, length);
    this.#edits.push(MEMORY_REMOVE, number, 0, this.#positionOf(number, length), -1);
  }

  /** Gives an empty slot cells for a cache that is loaded from elsewhere. See {@link Slot} for the last two. */
  load(number: number, count: number, layout: MediaLayout | null, minCut: number): void {
    this.#ledger.append(number, count);
    Object.assign(this.#slots[number]!, { layout, minCut });
  }

  /** Lets an empty slot hold the first `length` cells of another one too. {@link copy} gives them their content. */
  share(from: number, to: number, length: number): void {
    this.#ledger.share(from, to, length);
  }

  /** Copies the content of the first `length` cells of a slot, or of all of them. */
  copy(from: number, to: number, length = -1): void {
    this.#slots[to]!.minCut = this.#slots[from]!.minCut;
    this.copyPiece(from, to, 0, length < 0 ? -1 : this.#positionOf(from, length));
  }

  /** Copies the content of the cells between two positions. */
  copyPiece(from: number, to: number, start: number, end: number): void {
    this.#edits.push(MEMORY_COPY, from, to, start, end);
  }

  /** Removes the content of a slot. */
  clear(number: number): void {
    this.#edits.push(MEMORY_REMOVE, number, 0, -1, -1);
  }

  /** Returns a slot to its first `length` tokens, and to the checkpoint behind them if it has to be one. */
  restore(number: number, length: number, checkpoint?: number): void {
    if (checkpoint === undefined) return this.truncate(number, length);
    this.#checkpoints.touch(checkpoint);
    this.#ledger.truncate(number, length);
    this.#edits.push(MEMORY_RESTORE, number, checkpoint, this.#positionOf(number, length), -1);
  }

  /** Keeps a checkpoint behind these tokens. */
  keepCheckpoint(number: number, owner: CellOwner, tokens: Int32Array, bytes: number): void {
    this.#forget(this.#checkpoints.add(number, this.treeKey(owner), tokens, bytes));
  }

  /** Evicts cached slots other than `except` until this many cells are free. Returns false if that was not enough. */
  makeRoom(cells: number, except = -1): boolean {
    while (this.freeCells < cells && this.evict(except));
    return this.freeCells >= cells;
  }

  /** Frees the least recently used cached slot other than `except`. Returns false if there is none. */
  evict(except = -1): boolean {
    for (const { number } of this.#by.cached) {
      if (number === except) continue;
      this.free(number);
      return true;
    }
    return false;
  }

  /** Puts a slot last among those of a state. */
  #move(number: number, state: SlotState): Slot {
    const slot = this.#slots[number]!;
    this.#by[slot.state].delete(slot);
    this.#by[state].add(slot);
    slot.state = state;
    return slot;
  }

  /** The position of a slot's token. */
  #positionOf(number: number, index: number): number {
    return this.slot(number).layout?.positionOf(index) ?? index;
  }

  #forget(numbers: readonly number[]): void {
    for (const number of numbers) this.#edits.push(MEMORY_FORGET, 0, number, 0, 0);
  }
}
