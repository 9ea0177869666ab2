/**
 * Stop strings -> one automaton that reads text once, whatever their number (Aho and Corasick, 1975).
 * It reports the first stop string and the length of the tail that may grow into one.
 */

/** No stop string. */
const NONE = -1;
const ROOT = 0;
/** Values of a UTF-16 unit. */
const UNITS = 2 ** 16;

/** A compiled list of stop strings, shared by all choices of a request. A node is a common prefix; nodes are stored in columns. */
export class StopStrings {
  readonly strings: readonly string[];
  /** Length of the longest one. */
  readonly longest: number;
  /** Length of a node's prefix in units. */
  readonly depth: number[] = []; // (nodes)
  /** The stop string that equals a node's prefix, or -1. */
  readonly match: number[] = []; // (nodes)
  /** The longest shorter end of a node that is a stop string, or -1. */
  readonly output: number[] = []; // (nodes)
  readonly #fail: number[] = []; // (nodes) the longest shorter end of a node that is a node
  readonly #children = new Map<number, number>(); // by node and unit

  constructor(strings: readonly string[]) {
    this.strings = strings;
    this.#add(0, ROOT, NONE);
    const reached = strings.map(() => ROOT);
    let growing = strings.map((_, index) => index).filter((index) => strings[index] !== '');
    let length = 0;
    // A unit of every string at a time, so that all shorter prefixes are nodes before a longer one is.
    for (; growing.length > 0; length++) {
      for (const index of growing) {
        const node = this.#child(reached[index]!, strings[index]!.charCodeAt(length));
        reached[index] = node;
        // of equal strings the first in the list counts
        if (strings[index]!.length === length + 1 && this.match[node] === NONE) this.match[node] = index;
      }
      growing = growing.filter((index) => strings[index]!.length > length + 1);
    }
    this.longest = length;
  }

  /** The node after reading one more unit. */
  step(from: number, unit: number): number {
    for (let node = from; ; node = this.#fail[node]!) {
      const next = this.#children.get(node * UNITS + unit);
      if (next !== undefined) return next;
      if (node === ROOT) return ROOT;
    }
  }

  #child(parent: number, unit: number): number {
    const place = parent * UNITS + unit;
    const known = this.#children.get(place);
    if (known !== undefined) return known;
    const fail = parent === ROOT ? ROOT : this.step(this.#fail[parent]!, unit);
    const node = this.#add(
      this.depth[parent]! + 1,
      fail,
      this.match[fail] === NONE ? this.output[fail]! : fail,
    );
    this.#children.set(place, node);
    return node;
  }

  #add(depth: number, fail: number, output: number): number {
    this.match.push(NONE);
    this.#fail.push(fail);
    this.output.push(output);
    return this.depth.push(depth) - 1;
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

  /** Units at the end of the text so far that may grow into a stop string. */
  get pending(): number {
    return this.#stops.depth[this.#node]!;
  }

  /**
   * Reads further text. Of the stop strings that end in it, returns the one that begins first, and of those the first
   * in the list; null when there is none.
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
