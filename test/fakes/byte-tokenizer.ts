/** A tokenizer whose ids are bytes, with a few special ones behind them. Predictable by hand. */
import type { Tokenizer } from '../../src/engine/tokenizer/tokenizer.ts';

/** Ends a generation. */
export const EOS = 256;
/** Ends one too, but is not the primary end. */
export const END_OF_TURN = 257;
/** A special token that ends nothing. */
export const SPECIAL = 258;

const SPECIAL_TEXT = new Map([
  [EOS, '<eos>'],
  [END_OF_TURN, '<eot>'],
  [SPECIAL, '<sp>'],
]);

export const byteTokenizer: Tokenizer = {
  vocabSize: 259,
  eosId: EOS,
  endIds: new Set([EOS, END_OF_TURN]),
  bosText: '',
  eosText: '<eos>',
  encode: async (text) => Int32Array.from(new TextEncoder().encode(text)),
  bytesOf: (id) => (id < 256 ? Uint8Array.of(id) : new TextEncoder().encode(SPECIAL_TEXT.get(id) ?? '')),
  isSpecial: (id) => id >= 256,
};

/** The ids of a text. */
export function bytes(text: string): number[] {
  return [...new TextEncoder().encode(text)];
}
