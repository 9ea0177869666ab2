/** Texts of options -> a trie of their tokens, whose inner nodes are prompts; the probabilities of children -> those of the texts. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import { errorAt } from '../../errors.ts';
import { logSumExp } from './numbers.ts';
import { TextBehind } from './text-behind.ts';

/** A beginning of one or several options. */
type TrieNode = {
  readonly path: readonly number[];
  /** The tokens that may follow, and the nodes that they lead to; null behind an end. */
  readonly next: Map<number, TrieNode | null>;
};

/** Options as token sequences, each with an end behind it. The first node is the root. */
export type OptionTrie = {
  readonly options: readonly (readonly number[])[];
  readonly nodes: readonly TrieNode[];
};

/** Returns the tokens of texts behind the end of a prompt. Fails with `UNSUPPORTED` if one changes the tokens of that end. */
export async function tokensBehind(
  tail: string,
  texts: readonly string[],
  tokenizer: Tokenizer,
  path: string,
): Promise<number[][]> {
  const behind = new TextBehind(tokenizer, tail);
  const found: number[][] = [];
  for (const text of texts) {
    const ids = await behind.idsOf(text);
    if (ids === null)
      throw errorAt(
        path,
        'UNSUPPORTED',
        `this model's tokenizer does not write ${JSON.stringify(text)} apart from the prompt`,
      );
    found.push(ids);
  }
  return found;
}

/** Builds the trie. Fails with `INVALID_REQUEST` if two options are the same tokens. */
export function optionTrie(
  options: readonly (readonly number[])[],
  ends: readonly number[],
  path: string,
): OptionTrie {
  const nodes: TrieNode[] = [];
  const addNode = (tokens: readonly number[]): TrieNode => {
    const node: TrieNode = { path: tokens, next: new Map() };
    nodes.push(node);
    return node;
  };
  const root = addNode([]);
  const lasts = new Set<TrieNode>(); // nodes behind which an option ends
  for (const option of options) {
    let node = root;
    for (const [i, token] of option.entries()) {
      const child = node.next.get(token) ?? addNode(option.slice(0, i + 1));
      node.next.set(token, child);
      node = child;
    }
    if (lasts.has(node))
      throw errorAt(path, 'INVALID_REQUEST', 'two options are the same tokens of this model');
    lasts.add(node);
    for (const end of ends) if (!node.next.has(end)) node.next.set(end, null);
  }
  return { options, nodes };
}

/**
 * Returns the logarithm of the probability of each option: the sum of log p(token | prompt, tokens before it), and of the ends behind the last one.
 * `rows`: the log-probabilities of the children of each node.
 */
export function optionLogits(
  { options, nodes }: OptionTrie,
  rows: readonly (readonly number[])[],
  ends: readonly number[],
): number[] {
  const logprobs = new Map(
    nodes.map((node, i) => [node, new Map(Array.from(node.next.keys(), (id, k) => [id, rows[i]![k]!]))]),
  );
  return options.map((option) => {
    let node = nodes[0]!;
    let sum = 0;
    for (const token of option) {
      sum += logprobs.get(node)!.get(token)!;
      node = node.next.get(token)!;
    }
    return sum + logSumExp(ends.map((end) => logprobs.get(node)!.get(end)!));
  });
}
