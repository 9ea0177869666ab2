/**
 * Stop strings -> one automaton that reads text once, whatever their number (Aho and Corasick, 1975).
 * It reports the first stop string and the length of the tail that may grow into one.
 */

/** Marks a missing stop string or node. */
const NONE = -1;
/** The root node. It is the child of no node, so its number also marks an empty entry in the table of children. */
const ROOT = 0;

/**
 * A compiled list of stop strings, shared by all choices of a request. A node is a common prefix; nodes are stored in
 * columns, so that thousands of strings are compiled in milliseconds.
 */
export class StopStrings {
  readonly strings: readonly string[];
  /** Length of the longest stop string, in UTF-16 units. */
  readonly longest: number;
  /** Length of a node's prefix, in UTF-16 units. */
  readonly depth: Int32Array; // (nodes)
  /** Index of the stop string that equals a node's prefix, or -1. */
  readonly match: Int32Array; // (nodes)
  /** The longest proper suffix of a node that is a stop string, or -1. */
  readonly output: Int32Array; // (nodes)
  readonly #fail: Int32Array; // (nodes) the longest proper suffix that is a node
  readonly #parent: Int32Array; // (nodes)
  readonly #unit: Uint16Array; // (nodes) from the parent to here
  readonly #children: Int32Array; // hash table of nodes by parent and unit; a power of two long, at least half empty
  #count = 1; // nodes

  constructor(strings: readonly string[]) {
    this.strings = strings;
    this.longest = strings.reduce((length, string) => Math.max(length, string.length), 0);
    const most = strings.reduce((total, string) => total + string.length, 1);
    this.depth = new Int32Array(most);
    this.match = new Int32Array(most).fill(NONE);
    this.output = new Int32Array(most).fill(NONE);
    this.#fail = new Int32Array(most);
    this.#parent = new Int32Array(most);
    this.#unit = new Uint16Array(most);
    this.#children = new Int32Array(2 ** (1 + Math.ceil(Math.log2(most + 1))));
    for (const [index, string] of strings.entries()) this.#insert(string, index);
    this.#link();
  }

  /** Returns the node after reading one more unit. */
  step(from: number, unit: number): number {
    for (let node = from; ; node = this.#fail[node]!) {
      const next = this.#children[this.#place(node, unit)]!;
      if (next !== ROOT || node === ROOT) return next;
    }
  }

  #insert(string: string, index: number): void {
    let node = ROOT;
    for (let i = 0; i < string.length; i++) {
      const unit = string.charCodeAt(i);
      const place = this.#place(node, unit);
      if (this.#children[place] === ROOT) {
        const added = this.#count++;
        this.#children[place] = added;
        this.#parent[added] = node;
        this.#unit[added] = unit;
        this.depth[added] = i + 1;
      }
      node = this.#children[place]!;
    }
    if (this.match[node] === NONE) this.match[node] = index; // of equal strings, the first in the list is reported
  }

  #link(): void {
    for (const node of this.#byDepth()) {
      if (this.depth[node]! < 2) continue;
      const fail = this.step(this.#fail[this.#parent[node]!]!, this.#unit[node]!);
      this.#fail[node] = fail;
      this.output[node] = this.match[fail] === NONE ? this.output[fail]! : fail;
    }
  }

  /** Returns all nodes, sorted by depth. */
  #byDepth(): Int32Array {
    const starts = new Int32Array(this.longest + 2);
    for (let node = 0; node < this.#count; node++) starts[this.depth[node]! + 1]! += 1;
    for (let depth = 1; depth < starts.length; depth++) starts[depth]! += starts[depth - 1]!;
    const order = new Int32Array(this.#count);
    for (let node = 0; node < this.#count; node++) order[starts[this.depth[node]!]!++] = node;
    return order;
  }

  /** Returns the index of a node's child in the table, or of the empty entry for it. */
  #place(node: number, unit: number): number {
    const mask = this.#children.length - 1;
    const hash = Math.imul(Math.imul(node, 0x9e3779b1) ^ unit, 0x85ebca6b);
    for (let place = (hash ^ (hash >>> 15)) & mask; ; place = (place + 1) & mask) {
      const child = this.#children[place]!;
      if (child === ROOT || (this.#parent[child] === node && this.#unit[child] === unit)) return place;
    }
  }
}

/** Place of a stop string in the text, in UTF-16 units from the start of the text. */
export type StopMatch = { readonly index: number; readonly start: number; readonly end: number };

/** Reads one choice's text against a list of stop strings. */
export class StopScanner {
  readonly #stops: StopStrings;
  #node = ROOT;
  #length = 0;

  constructor(stops: StopStrings) {
    this.#stops = stops;
  }

  /** Number of units at the end of the text so far that may grow into a stop string. */
  get pending(): number {
    return this.#stops.depth[this.#node]!;
  }

  /**
   * Reads further text. Returns the stop string ending in it that begins first, and of several the first in the list. Returns null if there
   * is none.
   */
  push(text: string): StopMatch | null {
    const { depth, match, output } = this.#stops;
    let best: StopMatch | null = null;
    for (let i = 0; i < text.length; i++) {
      this.#node = this.#stops.step(this.#node, text.charCodeAt(i));
      const end = this.#length + i + 1;
      for (let at = this.#node; at !== NONE; at = output[at]!) {
        const index = match[at]!;
        if (index === NONE) continue;
        const start = end - depth[at]!;
        if (!best || start < best.start || (start === best.start && index < best.index))
          best = { index, start, end };
      }
    }
    this.#length += text.length;
    return best;
  }
}
