/** Texts of options -> a trie of their tokens, whose inner nodes are prompts; the probabilities of children -> those of the texts. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import { errorAt } from '../../errors.ts';
import { logSumExp } from './numbers.ts';
import { TextBehind } from './text-behind.ts';

/** A beginning of one or several options: its tokens, and the tokens that may follow it. */
type TrieNode = { readonly path: readonly number[]; readonly next: number[] };

/** Options as token sequences, each with an end behind it. */
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
  const nodes = new Map<string, { path: readonly number[]; next: Set<number> }>();
  const nodeAt = (tokens: readonly number[]): Set<number> => {
    const key = tokens.join();
    const known = nodes.get(key) ?? { path: tokens, next: new Set<number>() };
    nodes.set(key, known);
    return known.next;
  };
  const seen = new Set<string>();
  for (const option of options) {
    if (seen.has(option.join()))
      throw errorAt(path, 'INVALID_REQUEST', 'two options are the same tokens of this model');
    seen.add(option.join());
    for (const [i, token] of option.entries()) nodeAt(option.slice(0, i)).add(token);
    for (const end of ends) nodeAt(option).add(end);
  }
  return {
    options,
    nodes: [...nodes.values()].map(({ path: tokens, next }) => ({ path: tokens, next: [...next] })),
  };
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
  const byPath = new Map(
    nodes.map(({ path, next }, i) => [path.join(), new Map(next.map((id, k) => [id, rows[i]![k]!]))]),
  );
  return options.map((option) => {
    const tokens = option.map((token, i) => byPath.get(option.slice(0, i).join())!.get(token)!);
    const last = byPath.get(option.join())!;
    return tokens.reduce((sum, one) => sum + one, 0) + logSumExp(ends.map((end) => last.get(end)!));
  });
}
