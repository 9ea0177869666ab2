/** What callers give and get: the specification of a constraint, vocabularies, constraints and matchers. */

/** The `structured_outputs` of a request: exactly one of the first six, and options for JSON. */
export type StructuredOutputs = {
  /** A JSON Schema, as an object or as text. */
  readonly json?: string | boolean | Readonly<Record<string, unknown>> | null;
  /** The whole output matches this regular expression. */
  readonly regex?: string | null;
  /** The output is exactly one of these. */
  readonly choice?: readonly string[] | null;
  /** A grammar: GBNF or EBNF when a line holds `::=`, else Lark. */
  readonly grammar?: string | null;
  /** Any JSON object. `false` means unset. */
  readonly json_object?: boolean | null;
  /** A structural tag, as an object or as text. */
  readonly structural_tag?: string | Readonly<Record<string, unknown>> | null;
  /** Regular expression that stands between JSON tokens, instead of at most one blank or line break with indentation. */
  readonly whitespace_pattern?: string | null;
  /** Compact JSON. */
  readonly disable_any_whitespace?: boolean | null;
  /** Objects with listed properties take no others, unless the schema says otherwise. */
  readonly disable_additional_properties?: boolean | null;
  /** Refuse what would otherwise pass with a warning, such as an unknown `format`. */
  readonly disable_fallback?: boolean | null;
};

/** The tokens of a model, prepared for masking. Made once per model. */
export interface Vocabulary {
  /** Number of tokens. */
  readonly size: number;
  /** Memory that it takes, in bytes. */
  readonly memoryBytes: number;
  /** Tokens that end a sequence. */
  readonly eosTokenIds: Int32Array;
  /** The true bytes of a token. */
  bytes(tokenId: number): Uint8Array;
  /** A split of UTF-8 text or bytes into tokens. */
  tokenize(text: string | Uint8Array): Int32Array;
}

/** A compiled specification for one vocabulary. Immutable; share it between requests. */
export interface Constraint {
  /** Keywords that were read but restrict nothing, each with its JSON pointer. */
  readonly warnings: readonly string[];
  /** Begins a new sequence. */
  createMatcher(): Matcher;
}

/** One sequence under a constraint. */
export interface Matcher {
  /** Sets bit i of `mask`, ceil(vocabSize / 32) words, where token i is allowed next. */
  fillMask(mask: Int32Array): void;
  /** Takes a token. False, and the state unchanged, when it is not allowed. */
  accept(tokenId: number): boolean;
  /** Whether the end of the sequence is allowed here. */
  isComplete(): boolean;
  /** Tokens that must come next, as the model itself would have split their text. */
  forcedTokens(): Int32Array;
  /** Takes back the last `count` tokens. */
  rollback(count: number): void;
  /** A second matcher in the same state. */
  clone(): Matcher;
  /** Frees it; using it afterwards throws. */
  dispose(): void;
}
