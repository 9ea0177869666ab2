/** Texts -> their tokens as the tokenizer writes them behind the end of a prompt. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';

const TEXT = { addSpecial: false, parseSpecial: true };

/** Encodes texts behind the same end of a prompt. */
export class TextBehind {
  readonly #tokenizer: Tokenizer;
  readonly #tail: string;
  #tailIds: Int32Array | null = null;

  /** @param tail the end of the prompt, directly before the texts */
  constructor(tokenizer: Tokenizer, tail: string) {
    this.#tokenizer = tokenizer;
    this.#tail = tail;
  }

  /** Returns the tokens that `text` adds behind the tail, or null if it adds none or changes tokens of the tail. */
  async idsOf(text: string): Promise<number[] | null> {
    this.#tailIds ??= await this.#tokenizer.encode(this.#tail, TEXT);
    const tail = this.#tailIds;
    const whole = await this.#tokenizer.encode(this.#tail + text, TEXT);
    if (whole.length <= tail.length || !tail.every((id, i) => whole[i] === id)) return null;
    return Array.from(whole.subarray(tail.length));
  }
}
