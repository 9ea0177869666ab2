/** Labels of options -> the token ids that count for them, as the tokenizer writes them at the end of a prompt. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import type { ValidQuestion } from '../../protocol/index.ts';
import { LETTERS, PAIRS } from './question-text.ts';
import { TextBehind } from './text-behind.ts';

/** Labels of the places of a question, and for each place the token ids that count as its label; null if one has no single token. */
export type Labels = {
  readonly labels: readonly string[];
  readonly ids: readonly (readonly number[])[] | null;
};

/** Forms of the labels of a predicate. */
export const YES: readonly string[] = ['yes', 'Yes', 'YES'];
export const NO: readonly string[] = ['no', 'No', 'NO'];

/** Texts, and for each the token ids that count as it. */
export type FoundLabels = {
  readonly labels: readonly string[];
  readonly ids: readonly (readonly number[])[];
};

/** Most finders of a tokenizer. A template has few: one for each kind of question. */
const MOST_FINDERS = 64;
const finders = new WeakMap<Tokenizer, Map<string, LabelFinder>>();

/** Returns the finder for prompts that end with `tail`. It is the same for all requests, which so encode the labels once. */
export function labelFinder(tokenizer: Tokenizer, tail: string): LabelFinder {
  const known = finders.get(tokenizer) ?? new Map<string, LabelFinder>();
  finders.set(tokenizer, known);
  const finder = known.get(tail) ?? new LabelFinder(tokenizer, tail);
  if (known.size >= MOST_FINDERS && !known.has(tail)) known.clear();
  known.set(tail, finder);
  return finder;
}

/** Finds the labels for prompts with the same ending. Each text is encoded once. */
export class LabelFinder {
  readonly #behind: TextBehind;
  readonly #known = new Map<string, number | null>();

  /** @param tail the end of the prompts, directly before the label */
  constructor(tokenizer: Tokenizer, tail: string) {
    this.#behind = new TextBehind(tokenizer, tail);
  }

  /** Returns the labels of a question. */
  async of(question: ValidQuestion): Promise<Labels> {
    switch (question.type) {
      case 'predicate':
        return await this.#labels(['yes', 'no'], [YES, NO]);
      case 'score': {
        const digits = question.levels.map((_, level) => String(level));
        return await this.#labels(
          digits,
          digits.map((digit) => [digit]),
        );
      }
      case 'choice': {
        const count = question.choices.length;
        if (count <= LETTERS.length) {
          const letters = LETTERS.slice(0, count);
          return await this.#labels(letters, letters.map(withSpace));
        }
        const codes = await this.first(count, PAIRS, withSpace);
        return codes.labels.length === count ? codes : { labels: PAIRS.slice(0, count), ids: null };
      }
    }
  }

  async #labels(labels: readonly string[], forms: readonly (readonly string[])[]): Promise<Labels> {
    const ids: number[][] = [];
    for (const texts of forms) ids.push(await this.idsOf(texts));
    return { labels, ids: ids.every((found) => found.length > 0) ? ids : null };
  }

  /** Returns the first `count` texts with a form that is one token. Returns fewer if there are not so many. */
  async first(
    count: number,
    texts: readonly string[],
    formsOf: (text: string) => readonly string[] = (text) => [text],
  ): Promise<FoundLabels> {
    const labels: string[] = [];
    const ids: number[][] = [];
    for (const text of texts) {
      if (labels.length === count) break;
      const found = await this.idsOf(formsOf(text));
      if (found.length === 0) continue;
      labels.push(text);
      ids.push(found);
    }
    return { labels, ids };
  }

  /** Returns the distinct tokens of those texts that are one token. */
  async idsOf(texts: readonly string[]): Promise<number[]> {
    const ids = new Set<number>();
    for (const text of texts) {
      const id = await this.idOf(text);
      if (id !== null) ids.add(id);
    }
    return [...ids];
  }

  /** Returns the one token that `text` adds behind the tail, or null if it adds several or changes tokens of the tail. */
  async idOf(text: string): Promise<number | null> {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const [first = null, ...others] = (await this.#behind.idsOf(text)) ?? [];
    const id = others.length === 0 ? first : null;
    this.#known.set(text, id);
    return id;
  }
}

/** Returns the forms of a label without and with a space before it. */
export function withSpace(label: string): string[] {
  return [label, ` ${label}`];
}
