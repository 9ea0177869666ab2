/** Text <-> token ids, and the bytes behind each id. */
import { decodeRest, decodeWhole, NO_BYTES } from './utf8.ts';

/** The contract of an engine's tokenizer. */
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
   * special tokens as those tokens. Fails with `UNSUPPORTED` for a text that the vocabulary cannot spell.
   */
  encode(text: string, options: { addSpecial: boolean; parseSpecial: boolean }): Promise<Int32Array>;
  /** The bytes of one token, specials included; empty for an id outside the vocabulary. */
  bytesOf(id: number): Uint8Array;
  /** Returns true if the id is a control token, which produces no text when specials are skipped. */
  isSpecial(id: number): boolean;
}

/** Options that decide which bytes of special tokens become text. */
export type SpecialTokens = {
  /** True if special tokens produce no text. */
  readonly skipSpecial: boolean;
  /** Special tokens that produce text nevertheless, because they mark tool calls or reasoning. */
  readonly shownSpecials: ReadonlySet<number>;
  /** If special tokens are text: true if one that follows another keeps its leading space. */
  readonly spacesBetween: boolean;
};

const SPACE = 0x20;

/** Returns the bytes that a token after `previous` adds to the text. */
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

/** Cached texts of tokens that are whole characters, by id. */
const wholeTexts = new WeakMap<Tokenizer, Map<number, string>>();
/** Maximum number of cached tokens. Later ones are decoded each time. */
const MOST_WHOLE_TEXTS = 32_768;

function wholeTextsOf(tokenizer: Tokenizer): Map<number, string> {
  let texts = wholeTexts.get(tokenizer);
  if (!texts) {
    texts = new Map();
    wholeTexts.set(tokenizer, texts);
  }
  return texts;
}

/** Turns tokens into text piece by piece. Never splits a character: incomplete UTF-8 waits for its end. */
export class Detokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #specials: SpecialTokens;
  readonly #known: Map<number, string>;
  #open: Uint8Array = NO_BYTES; // of a character that is not complete
  #previous = -1;

  constructor(tokenizer: Tokenizer, specials: SpecialTokens) {
    this.#tokenizer = tokenizer;
    this.#specials = specials;
    this.#known = wholeTextsOf(tokenizer);
  }

  /** The text that this token completes; may be empty. */
  push(id: number): string {
    const isAtBorder = this.#open.length === 0;
    const known = isAtBorder ? this.#known.get(id) : undefined;
    const previous = this.#previous;
    this.#previous = id;
    if (known !== undefined) return known;
    const added = textBytes(this.#tokenizer, id, previous, this.#specials);
    if (added.length === 0) return '';
    const { text, open } = decodeWhole(this.#open, added);
    this.#open = open;
    const isWhole = isAtBorder && open.length === 0 && !this.#tokenizer.isSpecial(id);
    if (isWhole && this.#known.size < MOST_WHOLE_TEXTS) this.#known.set(id, text);
    return text;
  }

  /** True if no character is incomplete. */
  get isWhole(): boolean {
    return this.#open.length === 0;
  }

  /** Returns the rest at the end: U+FFFD for bytes of an incomplete character. */
  finish(): string {
    const left = this.#open;
    this.#open = NO_BYTES;
    return decodeRest(left);
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
