/**
 * Stop strings -> one automaton that reads text once, whatever their number (Aho and Corasick, 1975).
 * It tells where the first stop string stands and how much of the tail may still become one.
 */

type Node = {
  readonly next: Map<number, Node>;
  readonly depth: number;
  fail: Node | null;
  /** Index of the stop string that ends here, or -1. The longest shorter one is reached over `output`. */
  match: number;
  /** Nearest node on the fail path that ends a stop string. */
  output: Node | null;
};

/** A compiled list of stop strings, shared by all choices of a request. */
export class StopStrings {
  readonly strings: readonly string[];
  /** Length of the longest one. */
  readonly longest: number;
  readonly root: Node;

  constructor(strings: readonly string[]) {
    this.strings = strings;
    this.longest = strings.reduce((length, string) => Math.max(length, string.length), 0);
    this.root = createNode(0);
    for (const [index, string] of strings.entries()) this.#insert(string, index);
    this.#link();
  }

  #insert(string: string, index: number): void {
    let node = this.root;
    for (let i = 0; i < string.length; i++) {
      const unit = string.charCodeAt(i);
      let next = node.next.get(unit);
      if (!next) {
        next = createNode(node.depth + 1);
        node.next.set(unit, next);
      }
      node = next;
    }
    if (node.match < 0) node.match = index; // of equal strings the first in the list counts
  }

  #link(): void {
    const queue: Node[] = [];
    for (const child of this.root.next.values()) {
      child.fail = this.root;
      queue.push(child);
    }
    for (let head = 0; head < queue.length; head++) {
      const node = queue[head]!;
      for (const [unit, child] of node.next) {
        child.fail = step(this.root, node.fail!, unit);
        child.output = child.fail.match >= 0 ? child.fail : child.fail.output;
        queue.push(child);
      }
    }
  }
}

/** Where a stop string stands in the text, counted in UTF-16 units from its beginning. */
export type StopMatch = { readonly index: number; readonly start: number; readonly end: number };

/** Reads one choice's text against a list of stop strings. */
export class StopScanner {
  readonly #stops: StopStrings;
  #node: Node;
  #length = 0;

  constructor(stops: StopStrings) {
    this.#stops = stops;
    this.#node = stops.root;
  }

  /** Units at the end of the text read so far that may still grow into a stop string. */
  get pending(): number {
    return this.#node.depth;
  }

  /**
   * Reads further text. Of the stop strings that end in it, returns the one that begins first, and of those the first
   * in the list; null when there is none.
   */
  push(text: string): StopMatch | null {
    let best: StopMatch | null = null;
    for (let i = 0; i < text.length; i++) {
      this.#node = step(this.#stops.root, this.#node, text.charCodeAt(i));
      const end = this.#length + i + 1;
      for (let at: Node | null = this.#node; at; at = at.output) {
        if (at.match < 0) continue;
        const start = end - at.depth;
        if (!best || start < best.start || (start === best.start && at.match < best.index))
          best = { index: at.match, start, end };
      }
    }
    this.#length += text.length;
    return best;
  }
}

function createNode(depth: number): Node {
  return { next: new Map(), depth, fail: null, match: -1, output: null };
}

function step(root: Node, from: Node, unit: number): Node {
  for (let node: Node | null = from; node; node = node.fail) {
    const next = node.next.get(unit);
    if (next) return next;
  }
  return root;
}
