/** Specifications and vocabularies -> the public types for constraints and matchers. */
import type { ConstraintSpec } from '../protocol/index.ts';

/** The `structured_outputs` of a request: exactly one of the first six fields, and options for JSON. */
export type StructuredOutputs = Readonly<ConstraintSpec>;

/** The tokens of a model, prepared for masking. Made once per model. */
export interface Vocabulary {
  /** Number of tokens. */
  readonly size: number;
  /** Memory use in bytes. */
  readonly memoryBytes: number;
  /** Tokens that end a sequence. */
  readonly eosTokenIds: Int32Array;
  /** Returns the bytes of a token. */
  bytes(tokenId: number): Uint8Array;
  /**
   * Splits UTF-8 text or bytes into tokens as the model's tokenizer does inside of a longer text. A vocabulary of `createVocabulary` has no
   * tokenizer and takes the longest token first.
   */
  tokenize(text: string | Uint8Array): Int32Array;
}

/** A compiled specification for one vocabulary. Immutable; share it between requests. */
export interface Constraint {
  /** Keywords without effect here, each with its JSON pointer. */
  readonly warnings: readonly string[];
  /** The warnings about keywords that restrict values but are not enforced, so that the output may violate them. */
  readonly relaxed: readonly string[];
  /** Begins a new sequence. */
  createMatcher(): Matcher;
}

/** One sequence under a constraint. */
export interface Matcher {
  /** Sets bit i of `mask` (ceil(vocabSize / 32) words) if token i is allowed next, and clears it otherwise. */
  fillMask(mask: Int32Array): void;
  /** Accepts a token. Returns false, with the state unchanged, if the token is not allowed. */
  accept(tokenId: number): boolean;
  /** Returns true if the end of the sequence is allowed here. */
  isComplete(): boolean;
  /**
   * Returns the tokens of the only text that may follow, as the model's tokenizer splits them after the accepted ones. Tokens that depend
   * on later text are left out. Empty for a vocabulary of `createVocabulary`, and if the engine cannot open the tokenizer.
   */
  forcedTokens(): Int32Array;
  /** Removes the last `count` tokens. */
  rollback(count: number): void;
  /** Returns a second matcher in the same state. */
  clone(): Matcher;
  /** Frees the matcher. Later calls throw. */
  dispose(): void;
}
