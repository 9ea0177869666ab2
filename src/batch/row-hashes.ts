/** Hashes of rows -> tables of 8 bytes a row, so that memory hardly grows with them. */

/** Not 0, which stands for nothing. */
function toNumber(hash: string): bigint {
  return BigInt(`0x${hash}`) || 1n;
}

/** The hash of each line that is done. */
export class RowHashes {
  #table = new BigUint64Array(1024); // (lines)
  #last = 0;

  get lastLine(): number {
    return this.#last;
  }

  set(line: number, hash: string): void {
    if (line >= this.#table.length) {
      const larger = new BigUint64Array(2 * line);
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#table[line] = toNumber(hash);
    this.#last = Math.max(this.#last, line);
  }

  has(line: number): boolean {
    return (this.#table[line] ?? 0n) !== 0n;
  }

  matches(line: number, hash: string): boolean {
    return this.#table[line] === toNumber(hash);
  }
}

/** Hashes that have been seen. */
export class HashSet {
  #table = new BigUint64Array(2 ** 21); // at least half empty
  #size = 0;

  /** Adds a hash; false if it was there. */
  add(hash: string): boolean {
    if (!this.#put(toNumber(hash))) return false;
    this.#size += 1;
    const old = this.#table;
    if (2 * this.#size <= old.length) return true;
    this.#table = new BigUint64Array(2 * old.length);
    for (const value of old) if (value !== 0n) this.#put(value);
    return true;
  }

  #put(value: bigint): boolean {
    const slots = this.#table.length;
    for (let slot = Number(value % BigInt(slots)); this.#table[slot] !== value; slot = (slot + 1) % slots) {
      if (this.#table[slot] !== 0n) continue;
      this.#table[slot] = value;
      return true;
    }
    return false;
  }
}
