/** The types of the addon's sampler: a plan per request, a sampler per sequence. */

/** What a request asks of the sampler. Everything but `vocabSize` may be absent. */
export type SamplerPlanOptions = {
  readonly vocabSize: number;
  /** 0: greedy. Default 1. */
  readonly temperature?: number;
  /** 1: off, the default. */
  readonly topP?: number;
  /** 0: off, the default. */
  readonly minP?: number;
  /** 0 or -1: off, the default. */
  readonly topK?: number;
  /**
   * Locally typical sampling, 1: off, the default. Like XTC and a range of temperatures it makes the draw follow llama.cpp's order:
   * topK, typicalP, topP, minP, XTC, temperature.
   */
  readonly typicalP?: number;
  /** Chance that XTC runs at a token. 0: off, the default. */
  readonly xtcProbability?: number;
  /** Of the tokens at least this probable, XTC leaves the least probable. Default 0.1. */
  readonly xtcThreshold?: number;
  /** The temperature goes from `temperature - dynatempRange` to `temperature + dynatempRange` with the entropy. 0: off, the default. */
  readonly dynatempRange?: number;
  /** Default 1. */
  readonly dynatempExponent?: number;
  /** Version of mirostat, which replaces every filter: 1 or 2. 0: off, the default. */
  readonly mirostat?: number;
  /** Bits of surprise. Default 5. */
  readonly mirostatTau?: number;
  /** Default 0.1. */
  readonly mirostatEta?: number;
  /** DRY: what a token loses that would continue a repetition. 0: off, the default. */
  readonly dryMultiplier?: number;
  /** Default 1.75. */
  readonly dryBase?: number;
  /** Default 2. */
  readonly dryAllowedLength?: number;
  /** Tokens of prompt and output that DRY looks at; -1: all, the default. */
  readonly dryLastN?: number;
  /** Texts that end a repetition, none empty. Need `breakerTexts`. */
  readonly dryBreakers?: readonly string[];
  readonly breakerTexts?: TokenTextsHandle;
  /** 1: off, the default. Counts prompt and output. */
  readonly repetitionPenalty?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly logitBiasIds?: Int32Array; // (biases)
  readonly logitBiasValues?: Float32Array; // (biases)
  /** A bit per token, 1: allowed. */
  readonly allowed?: Uint32Array | Int32Array; // (vocabSize / 32, rounded up)
  /** Texts that the output must not hold, none empty. Need `tokenTexts`. */
  readonly badWords?: readonly string[];
  readonly tokenTexts?: TokenTextsHandle;
  /** `stopIds` are forbidden while fewer tokens than this were generated. */
  readonly minTokens?: number;
  readonly stopIds?: Int32Array;
  /** Forbidden while `holdEnd` says so. */
  readonly endIds?: Int32Array;
  /** -1: no log-probabilities, the default. 0: the chosen token's. k: also those of the k best. */
  readonly topLogprobs?: number;
  /** Above 0, a step hands out this many of the best tokens that masks and bias leave, and draws none. */
  readonly candidates?: number;
  /** Log-probabilities after the whole pipeline, instead of the model's own. */
  readonly processedLogprobs?: boolean;
};

/** What became of one row. */
export type SampledRow = {
  readonly status: number; // see ROW_STATUS
  readonly token: number; // -1 unless sampled
  readonly logprob: number; // natural logarithm; -Infinity is possible
  /** Of the token in bits, among those that were left; 0 without mirostat. */
  readonly surprise: number;
  /** Place among `topIds`, else the number of tokens that are at least as likely; 0: not asked for. */
  readonly rank: number;
  readonly topIds: Int32Array; // (k) best first, lowest id first among equals
  readonly topLogprobs: Float32Array; // (k)
};

declare const textsBrand: unique symbol;

/** What each token of a vocabulary adds to the text, shared by plans. */
export type TokenTextsHandle = { readonly [textsBrand]: true };

declare const planBrand: unique symbol;

/** An immutable plan, shared by the samplers of a request. */
export type SamplerPlanHandle = { readonly [planBrand]: true };

/** The sampling state of one sequence: counts, random stream, the beginnings of bad words. */
export type SamplerHandle = {
  /** Prompt tokens count for the repetition penalty and DRY only. */
  acceptPrompt(ids: Int32Array): void;
  /** A generated token. `surprise`: what `sample` said of it, which mirostat learns from; absent: it was not drawn. */
  accept(id: number, surprise?: number): void;
  /** Forbids the plan's `endIds` until it is called with false. */
  holdEnd(isHeld: boolean): void;
  /** The next tokens are these, whatever masks and draws say. */
  force(ids: Int32Array): void;
  /** Raw logits -> a token, not yet accepted. `mask`: a bit per token, 1: allowed by the grammar. */
  sample(logits: Float32Array, mask?: Uint32Array | Int32Array | null): SampledRow;
  /** First half of `sample`, up to a JavaScript hook: the row with masks (-Infinity) and bias. */
  prepare(logits: Float32Array, mask?: Uint32Array | Int32Array | null): Float32Array;
  /** Second half, on the edited row. Log-probabilities come from the raw logits. */
  sampleEdited(logits: Float32Array, row: Float32Array): SampledRow;
  /** The tokens of the next `count` places in the random stream, none accepted; -1 where sampling fails. */
  drawMany(logits: Float32Array, count: number, mask?: Uint32Array | Int32Array | null): Int32Array;
};

/** The sampler's part of the addon. */
export type SamplerAddon = {
  readonly TokenTexts: new (
    bytes: Uint8Array, // all texts, one after the other
    offsets: Uint32Array, // (tokens + 1)
  ) => TokenTextsHandle;
  readonly SamplerPlan: new (options: SamplerPlanOptions) => SamplerPlanHandle;
  /** @param seed its lowest 64 bits count. @param kernels one of `samplerKernels()`; default the fastest */
  /** Or a copy of a sampler in its present state. */
  readonly Sampler: (new (
    sampler: SamplerHandle,
  ) => SamplerHandle) &
    (new (
      plan: SamplerPlanHandle,
      seed: bigint,
      kernels?: string,
    ) => SamplerHandle);
  /** Log-softmax, rank and the k best of one row for a given token. */
  scoreRow(logits: Float32Array, token: number, k: number, kernels?: string): SampledRow;
  /** Numbers in [0, 1) at places of a seed's random stream, from `position` on: what samplers draw with. */
  uniforms(seed: bigint, position: number, count: number): Float64Array;
  /** The kernel variants that this processor runs, the fastest last. All give the same tokens. */
  samplerKernels(): string[];
};
