/**
 * Outputs of runs -> the keys and values of all slots. A slot is a view of one row of a block; a block is the past of one
 * run. If the graph outputs the keys and values of new tokens only, they are written behind the others in the block, which has
 * spare columns. Else the present of a run becomes the whole past of the next one.
 */
import type { CacheTensor, Decoder } from './messages.ts';

/** Memory of one cache tensor; 16-bit floats are kept as their bits. */
export type CacheArray = Float32Array | Uint16Array;

/** The cache of rows that run together: per tensor (rows, heads, columns, size). */
export type Block = {
  readonly rows: number;
  columns: number;
  arrays: CacheArray[]; // (cache tensors)
  readonly viewers: Set<number>; // slots
};

type View = { block: Block; row: number; start: number; length: number };

/** Highest share of idle rows in a run, relative to the others. */
const MAX_IDLE_SHARE = 0.25;
/** Spare columns: at least this number, or this share of the used ones. */
const SPARE_COLUMNS = 32;
const SPARE_SHARE = 0.125;

export class SlotCache {
  readonly #decoder: Decoder;
  readonly #views: (View | null)[]; // (slots)

  constructor(decoder: Decoder, slotCount: number) {
    this.#decoder = decoder;
    this.#views = new Array<View | null>(slotCount).fill(null);
  }

  lengthOf(slot: number): number {
    return this.#views[slot]?.length ?? 0;
  }

  /** Returns the column of the first token, within the block that {@link assemble} returned. */
  startOf(slot: number): number {
    return this.#views[slot]!.start;
  }

  rowOf(slot: number): number {
    return this.#views[slot]!.row;
  }

  /** Frees the tokens of a slot from position `from` on. */
  cut(slot: number, from: number): void {
    const view = this.#views[slot];
    if (!view || from >= view.length) return;
    view.length = Math.max(from, 0);
    if (view.length === 0) this.#drop(slot);
  }

  /** Makes an empty slot a view of the first `length` tokens of another one. They are copied when both run. */
  copy(from: number, to: number, length: number): void {
    const view = this.#views[from];
    this.#drop(to);
    if (!view || length === 0) return;
    this.#see(to, { ...view, length: Math.min(length, view.length) });
  }

  /**
   * Moves these slots into one block, each in its own row. Other slots in that block are moved out first.
   */
  assemble(slots: readonly number[]): Block {
    const block = this.#mostlyIn(slots);
    const longest = Math.max(...slots.map((slot) => this.lengthOf(slot)));
    const wanted = new Set(slots);
    if (!block || !this.#canServe(block, slots, longest)) return this.#gather(slots, longest);
    for (const slot of [...block.viewers]) if (!wanted.has(slot)) this.#moveOut(slot);
    const taken = new Set<number>();
    const movers: number[] = [];
    for (const slot of slots) {
      const view = this.#views[slot];
      if (view?.block !== block || taken.has(view.row)) movers.push(slot);
      else taken.add(view.row);
    }
    for (const slot of movers) {
      let row = 0;
      while (taken.has(row)) row += 1;
      taken.add(row);
      this.#place(slot, block, row);
    }
    for (const slot of slots) this.#align(slot);
    return block;
  }

  /** Stores the outputs of a run for new tokens, `counts[i]` of slot i: per tensor (rows, heads, most of `counts`, size), or tokens first. */
  append(
    block: Block,
    slots: readonly number[],
    counts: readonly number[],
    fresh: readonly CacheArray[],
  ): void {
    const most = Math.max(...counts);
    const longest = Math.max(...slots.map((slot, i) => this.lengthOf(slot) + counts[i]!));
    if (longest > block.columns) this.#widen(block, withSpare(longest));
    for (const [i, tensor] of this.#decoder.cache.entries())
      for (const [j, slot] of slots.entries())
        this.#write(tensor, block, this.#views[slot]!, {
          from: fresh[i]!,
          to: block.arrays[i]!,
          count: counts[j]!,
          most,
        });
    for (const [i, slot] of slots.entries()) this.#views[slot]!.length += counts[i]!;
  }

  /** Writes the new tokens of one row of one tensor. */
  #write(
    { heads, size }: CacheTensor,
    { columns }: Block,
    { row, length }: View,
    { from, to, count, most }: { from: CacheArray; to: CacheArray; count: number; most: number },
  ): void {
    const isHeadsFirst = this.#decoder.fresh === 'heads' || most === 1;
    for (let head = 0; head < heads; head++) {
      const target = ((row * heads + head) * columns + length) * size;
      if (isHeadsFirst) {
        const source = (row * heads + head) * most * size;
        to.set(from.subarray(source, source + count * size), target);
        continue;
      }
      for (let token = 0; token < count; token++) {
        const source = ((row * most + token) * heads + head) * size;
        to.set(from.subarray(source, source + size), target + token * size);
      }
    }
  }

  /** Replaces the past by the present of a run, which is longer by the largest of `counts`. */
  replace(
    block: Block,
    slots: readonly number[],
    counts: readonly number[],
    present: readonly CacheArray[],
  ): void {
    block.arrays = [...present];
    block.columns += Math.max(...counts);
    for (const [i, slot] of slots.entries()) this.#views[slot]!.length += counts[i]!;
  }

  /** Returns the cache of a slot: tensor by tensor, head by head. */
  save(slot: number): Uint8Array {
    const view = this.#views[slot];
    if (!view) return new Uint8Array(0);
    const block = this.#make(1, view.length);
    this.#copyTokens(view, block, 0, 0);
    return Buffer.concat(block.arrays.map(bytesOf));
  }

  /** Fills an empty slot. Returns false if the bytes do not fit this cache. */
  load(slot: number, state: Uint8Array): boolean {
    const bytes = this.#decoder.cacheType === 'float16' ? 2 : 4;
    const length = state.length / bytes / this.#numbersPerToken();
    if (!Number.isInteger(length) || length === 0) return false;
    this.#drop(slot);
    const block = this.#make(1, length);
    let at = 0;
    for (const part of block.arrays.map(bytesOf)) {
      part.set(state.subarray(at, at + part.length));
      at += part.length;
    }
    this.#see(slot, { block, row: 0, start: 0, length });
    return true;
  }

  #numbersPerToken(): number {
    return this.#decoder.cache.reduce((sum, { heads, size }) => sum + heads * size, 0);
  }

  /** Returns the block that contains most of these slots. */
  #mostlyIn(slots: readonly number[]): Block | null {
    const counts = new Map<Block, number>();
    let best: Block | null = null;
    for (const slot of slots) {
      const block = this.#views[slot]?.block;
      if (!block) continue;
      counts.set(block, (counts.get(block) ?? 0) + 1);
      if (!best || counts.get(block)! > counts.get(best)!) best = block;
    }
    return best;
  }

  /** Returns true if these slots can run in an existing block: it has enough rows, few of them idle, and no useless columns. */
  #canServe(block: Block, slots: readonly number[], longest: number): boolean {
    const idle = block.rows - slots.length;
    if (idle < 0 || idle > MAX_IDLE_SHARE * slots.length) return false;
    if (block.columns < longest) return false;
    if (this.#decoder.fresh) return block.columns <= 2 * withSpare(longest);
    if (this.#decoder.padding === 'none') return block.columns === longest;
    return block.columns <= 2 * longest + SPARE_COLUMNS;
  }

  #gather(slots: readonly number[], longest: number): Block {
    const block = this.#make(slots.length, longest > 0 && this.#decoder.fresh ? withSpare(longest) : longest);
    const left = new Set<Block>();
    for (const [row, slot] of slots.entries()) {
      const before = this.#views[slot]?.block;
      if (before) left.add(before);
      this.#place(slot, block, row);
    }
    // A slot that stays in the old block would keep the memory of all its rows.
    for (const other of left)
      if (other.rows > other.viewers.size) for (const slot of [...other.viewers]) this.#moveOut(slot);
    return block;
  }

  /** Makes room for more columns. */
  #widen(block: Block, columns: number): void {
    const before = { ...block };
    block.arrays = this.#decoder.cache.map((tensor) => this.#allocate(tensor, block.rows, columns));
    block.columns = columns;
    for (const slot of block.viewers) {
      const view = this.#views[slot]!;
      this.#copyTokens({ ...view, block: before }, block, view.row, view.start);
    }
  }

  /** Moves a slot into a new block. */
  #moveOut(slot: number): void {
    this.#place(slot, this.#make(1, this.lengthOf(slot)), 0);
  }

  /** Copies a slot's tokens into a row. */
  #place(slot: number, block: Block, row: number): void {
    const view = this.#views[slot];
    const length = view?.length ?? 0;
    const start = this.#startIn(block, length);
    if (view) this.#copyTokens(view, block, row, start);
    this.#drop(slot);
    this.#see(slot, { block, row, start, length });
  }

  /** Moves a row's tokens to where a run expects them. */
  #align(slot: number): void {
    const view = this.#views[slot]!;
    const start = this.#startIn(view.block, view.length);
    if (start === view.start) return;
    this.#copyTokens(view, view.block, view.row, start);
    view.start = start;
  }

  #copyTokens(view: View, block: Block, row: number, start: number): void {
    for (const [i, tensor] of this.#decoder.cache.entries())
      for (let head = 0; head < tensor.heads; head++) {
        const from = offsetOf(tensor, view.block.columns, view.row, head, view.start);
        const to = offsetOf(tensor, block.columns, row, head, start);
        block.arrays[i]!.set(view.block.arrays[i]!.subarray(from, from + view.length * tensor.size), to);
      }
  }

  /** Returns the first column of a row. Rows that are padded on the left end with the block. */
  #startIn(block: Block, length: number): number {
    return this.#decoder.fresh || this.#decoder.padding === 'right' ? 0 : block.columns - length;
  }

  #make(rows: number, columns: number): Block {
    const arrays = this.#decoder.cache.map((tensor) => this.#allocate(tensor, rows, columns));
    return { rows, columns, arrays, viewers: new Set() };
  }

  #allocate({ heads, size }: CacheTensor, rows: number, columns: number): CacheArray {
    const count = rows * heads * columns * size;
    return this.#decoder.cacheType === 'float16' ? new Uint16Array(count) : new Float32Array(count);
  }

  #see(slot: number, view: View): void {
    this.#views[slot] = view;
    view.block.viewers.add(slot);
  }

  #drop(slot: number): void {
    this.#views[slot]?.block.viewers.delete(slot);
    this.#views[slot] = null;
  }
}

function withSpare(columns: number): number {
  return columns + Math.max(SPARE_COLUMNS, Math.ceil(columns * SPARE_SHARE));
}

function bytesOf({ buffer, byteOffset, byteLength }: CacheArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function offsetOf(
  { heads, size }: CacheTensor,
  columns: number,
  row: number,
  head: number,
  column: number,
): number {
  return ((row * heads + head) * columns + column) * size;
}
