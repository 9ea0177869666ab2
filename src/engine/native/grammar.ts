/** The types of the grammar engine, an addon of its own. Handles are opaque and freed by the garbage collector. */

/** An opaque native object. */
export type Handle = { readonly opaque: unique symbol };

/** A specification after validation, as the engine takes it. */
export type NativeSpec = {
  readonly kind: 0 | 1 | 2 | 3 | 4; // json, regex, choice, grammar, structural tag
  readonly text: string;
  readonly choices: readonly string[];
  readonly anyWhitespace: boolean;
  readonly disableAdditionalProperties: boolean;
  readonly refuseUnknown: boolean;
  readonly anyOrder: boolean; // properties in any order, everywhere
  readonly schemaUris: readonly string[];
  readonly schemas: readonly string[]; // by the place of the URI
  readonly whitespacePattern?: string;
};

/** Functions of `native/napi/grammar.cc`. A matcher's handle also is what the main addon takes beside a sampler. */
export type GrammarAddon = {
  createVocabulary(
    bytes: Uint8Array, // all tokens, one after the other
    offsets: Uint32Array, // (tokens + 1)
    eosTokenIds: Int32Array,
    specialTokenIds: Int32Array,
    tokenizer?: Handle, // of the main addon; without it nothing is forced, and texts are split longest first
  ): Handle;
  /** The same, off the event loop. */
  loadVocabulary(...tokens: Parameters<GrammarAddon['createVocabulary']>): Promise<Handle>;
  vocabularyInfo(vocabulary: Handle): { size: number; memoryBytes: number; eosTokenIds: Int32Array };
  tokenizeBytes(vocabulary: Handle, bytes: Uint8Array): Int32Array;
  tokenBytes(vocabulary: Handle, tokenId: number): Uint8Array | undefined;
  compileConstraint(
    spec: NativeSpec,
    vocabulary: Handle,
    cancelled?: Int32Array, // (1) set to 1, it ends the compilation with ABORTED
    work?: number, // at most; a million take about 10 ms
  ): Promise<{ constraint: Handle; warnings: string[]; relaxed: string[] } | null>; // null: the work was not enough
  /** Computes the masks that texts meet first, until one is asked for. Returns their number. */
  warmUp(constraint: Handle): Promise<number>;
  createMatcher(constraint: Handle): Handle;
  fillMask(matcher: Handle, mask: Int32Array): boolean | undefined; // undefined: the mask is too short
  /** Returns the number of masks of this process that lack tokens because their work was spent. */
  cutMasks(): number;
  accept(matcher: Handle, tokenId: number): boolean;
  isComplete(matcher: Handle): boolean;
  forcedTokens(matcher: Handle): Int32Array;
  rollback(matcher: Handle, count: number): boolean;
  /** Returns true if only the end may follow. */
  isFinal(matcher: Handle): boolean;
  cloneMatcher(matcher: Handle): Handle;
};
