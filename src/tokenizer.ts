/** Text <-> token ids, and the bytes behind each id. */

/** What an engine's tokenizer must do. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** Primary end-of-sequence id, or -1. */
  readonly eosId: number;
  /** Every id that ends a generation by itself, the primary one included. */
  readonly endIds: ReadonlySet<number>;
  /** Text of the beginning-of-sequence token, or the empty string. */
  readonly bosText: string;
  readonly eosText: string;
  /**
   * Encodes text. `addSpecial` adds the tokens that the model wants around a text; `parseSpecial` reads the text of
   * special tokens as those tokens.
   */
  encode(text: string, options: { addSpecial: boolean; parseSpecial: boolean }): Promise<Int32Array>;
  /** The bytes of one token, specials included; empty for an id outside the vocabulary. */
  bytesOf(id: number): Uint8Array;
  /** Whether the id is a control token, which produces no text when specials are skipped. */
  isSpecial(id: number): boolean;
}

/** Turns tokens into text as they come. Never splits a character: incomplete UTF-8 waits for its end. */
export class Detokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #skipSpecial: boolean;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(tokenizer: Tokenizer, skipSpecial: boolean) {
    this.#tokenizer = tokenizer;
    this.#skipSpecial = skipSpecial;
  }

  /** The text that this token completes; may be empty. */
  push(id: number): string {
    if (this.#skipSpecial && this.#tokenizer.isSpecial(id)) return '';
    return this.#decoder.decode(this.#tokenizer.bytesOf(id), { stream: true });
  }

  /** What is left at the end: U+FFFD for bytes that never became a character. */
  finish(): string {
    return this.#decoder.decode();
  }
}

/** The text of a whole list of tokens. */
export function detokenize(tokenizer: Tokenizer, ids: Iterable<number>, skipSpecial: boolean): string {
  const detokenizer = new Detokenizer(tokenizer, skipSpecial);
  let text = '';
  for (const id of ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}
