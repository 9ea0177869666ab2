/** Which slots hold which cells of the KV cache -> how many are free. Counts shared prefixes once; sees no tensors. */

/** A run of cells that one or more slots hold together. */
type Segment = { length: number; holders: number };

/** Bookkeeping of a cache. In a non-unified one, a shared prefix is a copy that takes cells again. */
export class KvLedger {
  readonly #capacity: number;
  readonly #isKvUnified: boolean;
  readonly #segments: Segment[][];
  readonly #lengths: Int32Array; // (slots) cells each slot holds, shared ones included
  #used = 0;

  constructor(capacity: number, slotCount: number, isKvUnified: boolean) {
    this.#capacity = capacity;
    this.#isKvUnified = isKvUnified;
    this.#segments = Array.from({ length: slotCount }, () => []);
    this.#lengths = new Int32Array(slotCount);
  }

  /** Cells in use, each counted once. */
  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.#capacity - this.#used;
  }

  /** Cells that a slot holds, shared ones included. */
  lengthOf(slot: number): number {
    return this.#lengths[slot]!;
  }

  /** Cells that these slots hold together, each counted once. */
  usedBy(slots: Iterable<number>): number {
    const seen = new Set<Segment>();
    let used = 0;
    for (const slot of slots)
      for (const segment of this.#segments[slot]!)
        if (!seen.has(segment)) {
          seen.add(segment);
          used += segment.length;
        }
    return used;
  }

  /** Adds unshared cells to the end of a slot. The caller has checked that they are free. */
  append(slot: number, length: number): void {
    const segments = this.#segments[slot]!;
    const last = segments.at(-1);
    if (last?.holders === 1) last.length += length;
    else segments.push({ length, holders: 1 });
    this.#lengths[slot]! += length;
    this.#used += length;
  }

  /** Lets an empty slot hold the first `length` cells of another one too. */
  share(from: number, to: number, length: number): void {
    if (!this.#isKvUnified) return this.append(to, length);
    this.#splitAt(from, length);
    let at = 0;
    for (const segment of this.#segments[from]!) {
      if (at >= length) break;
      segment.holders += 1;
      this.#segments[to]!.push(segment);
      at += segment.length;
    }
    this.#lengths[to] = length;
  }

  /** Frees the cells of a slot behind the first `length`. */
  truncate(slot: number, length: number): void {
    if (length >= this.#lengths[slot]!) return;
    this.#splitAt(slot, length);
    const segments = this.#segments[slot]!;
    while (this.#lengths[slot]! > length) {
      const segment = segments.pop()!;
      this.#lengths[slot]! -= segment.length;
      segment.holders -= 1;
      if (segment.holders === 0) this.#used -= segment.length;
    }
  }

  /** Makes `length` a border between segments of a slot, and of every slot that shares the split one. */
  #splitAt(slot: number, length: number): void {
    let at = 0;
    for (const segment of this.#segments[slot]!) {
      if (at === length) return;
      if (at + segment.length > length) return this.#split(segment, length - at);
      at += segment.length;
    }
  }

  #split(segment: Segment, head: number): void {
    const tail: Segment = { length: segment.length - head, holders: segment.holders };
    segment.length = head;
    let left = segment.holders;
    for (const segments of this.#segments) {
      if (left === 0) break;
      const index = segments.indexOf(segment);
      if (index < 0) continue;
      segments.splice(index + 1, 0, tail);
      left -= 1;
    }
  }
}
