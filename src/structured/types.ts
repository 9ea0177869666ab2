/** The public types: specification, vocabulary, constraint and matcher. */
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
  /** The bytes of a token. */
  bytes(tokenId: number): Uint8Array;
  /** Splits UTF-8 text or bytes into tokens. */
  tokenize(text: string | Uint8Array): Int32Array;
}

/** A compiled specification for one vocabulary. Immutable; share it between requests. */
export interface Constraint {
  /** Keywords that restrict nothing here, each with its JSON pointer. */
  readonly warnings: readonly string[];
  /** Those of them that restrict values and are not enforced, so the output may break them. */
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
  /** Whether the end of the sequence is allowed here. */
  isComplete(): boolean;
  /** The only tokens possible next, split as the model's tokenizer would. */
  forcedTokens(): Int32Array;
  /** Removes the last `count` tokens. */
  rollback(count: number): void;
  /** A second matcher in the same state. */
  clone(): Matcher;
  /** Frees the matcher. Later calls throw. */
  dispose(): void;
}
