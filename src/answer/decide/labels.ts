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

/** Finds the labels for prompts with the same ending. Each text is encoded once. */
export class LabelFinder {
  readonly #behind: TextBehind;
  readonly #known = new Map<string, number | null>();
  #codes: { labels: string[]; ids: number[][] } | null = null;

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
        if (count > LETTERS.length) return await this.#twoLetters(count);
        const letters = LETTERS.slice(0, count);
        return await this.#labels(letters, letters.map(withSpace));
      }
    }
  }

  async #labels(labels: readonly string[], forms: readonly (readonly string[])[]): Promise<Labels> {
    const ids: number[][] = [];
    for (const texts of forms) ids.push(await this.#idsOf(texts));
    return { labels, ids: ids.every((found) => found.length > 0) ? ids : null };
  }

  /** Returns the first `count` codes from AA to ZZ that are one token. Returns the first of all if too few are. */
  async #twoLetters(count: number): Promise<Labels> {
    this.#codes ??= await this.#findCodes();
    const { labels, ids } = this.#codes;
    if (labels.length < count) return { labels: PAIRS.slice(0, count), ids: null };
    return { labels: labels.slice(0, count), ids: ids.slice(0, count) };
  }

  async #findCodes(): Promise<{ labels: string[]; ids: number[][] }> {
    const labels: string[] = [];
    const ids: number[][] = [];
    for (const pair of PAIRS) {
      const found = await this.#idsOf(withSpace(pair));
      if (found.length === 0) continue;
      labels.push(pair);
      ids.push(found);
    }
    return { labels, ids };
  }

  async #idsOf(texts: readonly string[]): Promise<number[]> {
    const ids = new Set<number>();
    for (const text of texts) {
      const id = await this.#idOf(text);
      if (id !== null) ids.add(id);
    }
    return [...ids];
  }

  /** Returns the one token that `text` adds behind the tail, or null if it adds several or changes tokens of the tail. */
  async #idOf(text: string): Promise<number | null> {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const [first = null, ...others] = (await this.#behind.idsOf(text)) ?? [];
    const id = others.length === 0 ? first : null;
    this.#known.set(text, id);
    return id;
  }
}

function withSpace(label: string): string[] {
  return [label, ` ${label}`];
}
