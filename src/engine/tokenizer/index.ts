/** Text <-> token ids, and the characters that bytes in pieces complete. */
export { Detokenizer, detokenize, type SpecialTokens, type Tokenizer, textBytes } from './tokenizer.ts';
export { decodeWhole, NO_BYTES } from './utf8.ts';
