/**
 * Token ids -> the slots whose cache begins with the most of them. A radix tree whose edges are runs of tokens; each
 * node lists the slots that pass through it. Trees of different keys (adapter and `cache_salt`) never meet.
 */

type Node = {
  edge: Int32Array; // tokens from the parent to here
  parent: Node | null;
  readonly children: Map<number, Node>; // by first token of the edge
  readonly slots: Set<number>; // slots whose tokens pass through the whole edge
};

/** The longest known beginning of some tokens, and every slot that holds it. */
export type PrefixMatch = { readonly slots: ReadonlySet<number>; readonly length: number };

/** The tokens that each slot's cache holds. */
export class PrefixCache {
  readonly #roots = new Map<string, Node>();
  readonly #ends = new Map<number, { readonly key: string; readonly node: Node; readonly length: number }>();

  /** Number of slots in the tree. */
  get size(): number {
    return this.#ends.size;
  }

  /** Tokens of a slot in the tree; 0 when it is not in it. */
  lengthOf(slot: number): number {
    return this.#ends.get(slot)?.length ?? 0;
  }

  /** The longest beginning of `tokens` that any slot holds, or null. */
  find(key: string, tokens: Int32Array): PrefixMatch | null {
    let node = this.#roots.get(key);
    let length = 0;
    let best: PrefixMatch | null = null;
    while (node) {
      const child: Node | undefined = length < tokens.length ? node.children.get(tokens[length]!) : undefined;
      if (!child) break;
      const common = commonLength(child.edge, tokens, length);
      length += common;
      best = { slots: child.slots, length };
      if (common < child.edge.length) break;
      node = child;
    }
    return best;
  }

  /** The slots whose tokens are all of them a beginning of these, the shortest first. */
  ends(key: string, tokens: Int32Array): number[] {
    const found: number[] = [];
    let node = this.#roots.get(key);
    let length = 0;
    while (node) {
      for (const slot of node.slots) if (this.#ends.get(slot)!.node === node) found.push(slot);
      const child: Node | undefined = length < tokens.length ? node.children.get(tokens[length]!) : undefined;
      if (!child || commonLength(child.edge, tokens, length) < child.edge.length) break;
      length += child.edge.length;
      node = child;
    }
    return found;
  }

  /** Records that `slot` holds exactly `tokens`; replaces an earlier record of it. */
  insert(key: string, slot: number, tokens: Int32Array): void {
    this.remove(slot);
    if (tokens.length === 0) return;
    let node = this.#roots.get(key);
    if (!node) {
      node = createNode(new Int32Array(0), null);
      this.#roots.set(key, node);
    }
    let at = 0;
    while (at < tokens.length) {
      let child: Node | undefined = node.children.get(tokens[at]!);
      if (!child) {
        child = createNode(tokens.slice(at), node);
        node.children.set(tokens[at]!, child);
      }
      const common = commonLength(child.edge, tokens, at);
      if (common < child.edge.length) child = this.#split(child, common);
      child.slots.add(slot);
      at += common;
      node = child;
    }
    this.#ends.set(slot, { key, node, length: tokens.length });
  }

  /** Returns true if another slot holds all tokens of this one. */
  isCovered(slot: number): boolean {
    const end = this.#ends.get(slot);
    return end !== undefined && end.node.slots.size > 1;
  }

  /** Slots whose tokens are a prefix of this one's, or the same: caching them too is no gain. */
  coveredBy(slot: number): number[] {
    const covered: number[] = [];
    for (let node = this.#ends.get(slot)?.node; node; node = node.parent ?? undefined)
      for (const other of node.slots)
        if (other !== slot && this.#ends.get(other)!.node === node) covered.push(other);
    return covered;
  }

  /** Removes a slot. */
  remove(slot: number): void {
    const end = this.#ends.get(slot);
    if (!end) return;
    this.#ends.delete(slot);
    for (let node: Node | null = end.node; node?.parent; node = node.parent) {
      node.slots.delete(slot);
      if (node.slots.size === 0) node.parent.children.delete(node.edge[0]!);
    }
    if (this.#roots.get(end.key)?.children.size === 0) this.#roots.delete(end.key);
  }

  /** Cuts an edge: the new upper node gets the first `length` tokens and all slots of the lower one. */
  #split(node: Node, length: number): Node {
    const upper = createNode(node.edge.slice(0, length), node.parent);
    for (const slot of node.slots) upper.slots.add(slot);
    node.parent!.children.set(upper.edge[0]!, upper);
    node.edge = node.edge.slice(length);
    node.parent = upper;
    upper.children.set(node.edge[0]!, node);
    return upper;
  }
}

function createNode(edge: Int32Array, parent: Node | null): Node {
  return { edge, parent, children: new Map(), slots: new Set() };
}

/** Returns the number of first tokens of `edge` that equal those of `tokens` from `at` on. */
function commonLength(edge: Int32Array, tokens: Int32Array, at: number): number {
  const limit = Math.min(edge.length, tokens.length - at);
  let length = 0;
  while (length < limit && edge[length] === tokens[at + length]) length += 1;
  return length;
}
