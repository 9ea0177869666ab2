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

/** Which bytes of special tokens become text. */
export type SpecialTokens = {
  /** They are no text. */
  readonly skipSpecial: boolean;
  /** These are text all the same, because they mark tool calls or reasoning. */
  readonly shownSpecials: ReadonlySet<number>;
  /** Where they are text: whether one that follows another keeps the space that it begins with. */
  readonly spacesBetween: boolean;
};

const SPACE = 0x20;

/** What a token that follows `previous` adds to the text. */
export function textBytes(
  tokenizer: Tokenizer,
  id: number,
  previous: number,
  { skipSpecial, shownSpecials, spacesBetween }: SpecialTokens,
): Uint8Array {
  const bytes = tokenizer.bytesOf(id);
  if (!tokenizer.isSpecial(id)) return bytes;
  if (skipSpecial) return shownSpecials.has(id) ? bytes : bytes.subarray(0, 0);
  return !spacesBetween && bytes[0] === SPACE && tokenizer.isSpecial(previous) ? bytes.subarray(1) : bytes;
}

/** Turns tokens into text as they come. Never splits a character: incomplete UTF-8 waits for its end. */
export class Detokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #specials: SpecialTokens;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #previous = -1;

  constructor(tokenizer: Tokenizer, specials: SpecialTokens) {
    this.#tokenizer = tokenizer;
    this.#specials = specials;
  }

  /** The text that this token completes; may be empty. */
  push(id: number): string {
    const bytes = textBytes(this.#tokenizer, id, this.#previous, this.#specials);
    this.#previous = id;
    return bytes.length === 0 ? '' : this.#decoder.decode(bytes, { stream: true });
  }

  /** What is left at the end: U+FFFD for bytes that never became a character. */
  finish(): string {
    return this.#decoder.decode();
  }
}

/** The text of a whole list of tokens. */
export function detokenize(tokenizer: Tokenizer, ids: Iterable<number>, skipSpecial: boolean): string {
  const specials = { skipSpecial, shownSpecials: new Set<number>(), spacesBetween: true };
  const detokenizer = new Detokenizer(tokenizer, specials);
  let text = '';
  for (const id of ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}
