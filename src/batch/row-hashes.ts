/** Hashes of rows -> tables of 8 bytes a row, so that memory hardly grows with them. */

const FIRST_ROWS = 2 ** 21;

function high(hash: string): number {
  return Number.parseInt(hash.slice(0, 8), 16);
}

/** Not 0, which stands for nothing. */
function low(hash: string): number {
  return Number.parseInt(hash.slice(8, 16), 16) || 1;
}

/** The hash of each line that is done. */
export class RowHashes {
  #table = new Uint32Array(0); // (lines, 2)
  #last = 0;

  /** The last line with a hash. */
  get lastLine(): number {
    return this.#last;
  }

  set(line: number, hash: string): void {
    if (2 * line + 1 >= this.#table.length) {
      const larger = new Uint32Array(2 * Math.max(1024, 2 * line));
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#table[2 * line] = high(hash);
    this.#table[2 * line + 1] = low(hash);
    this.#last = Math.max(this.#last, line);
  }

  has(line: number): boolean {
    return this.#table[2 * line + 1] !== undefined && this.#table[2 * line + 1] !== 0;
  }

  /** Whether the line has this hash. */
  matches(line: number, hash: string): boolean {
    return this.#table[2 * line] === high(hash) && this.#table[2 * line + 1] === low(hash);
  }
}

/** Hashes that have been seen. */
export class HashSet {
  #slots = FIRST_ROWS;
  #table = new Uint32Array(2 * FIRST_ROWS);
  #size = 0;

  /** Adds a hash; false if it was there. */
  add(hash: string): boolean {
    if (!this.#put(high(hash), low(hash))) return false;
    this.#size += 1;
    if (this.#size * 2 > this.#slots) this.#grow();
    return true;
  }

  #put(upper: number, lower: number): boolean {
    for (let slot = upper % this.#slots; ; slot = (slot + 1) % this.#slots) {
      const at = 2 * slot;
      if (this.#table[at + 1] === 0) {
        this.#table[at] = upper;
        this.#table[at + 1] = lower;
        return true;
      }
      if (this.#table[at] === upper && this.#table[at + 1] === lower) return false;
    }
  }

  #grow(): void {
    const old = this.#table;
    this.#slots *= 2;
    this.#table = new Uint32Array(2 * this.#slots);
    for (let at = 0; at < old.length; at += 2) if (old[at + 1] !== 0) this.#put(old[at]!, old[at + 1]!);
  }
}
