/** The types of the addon's sampler: a plan per request, a sampler per sequence. */
import type { ChatCompletionRequest } from '../../protocol/index.ts';

/** Fields of a request that are numbers. */
type NumberField = {
  [Field in keyof ChatCompletionRequest]-?: number extends ChatCompletionRequest[Field] ? Field : never;
}[keyof ChatCompletionRequest];

/** Settings of the sampler for a request, under the names of its fields. Absent ones are off. */
export type SamplerPlanOptions = { readonly [Field in NumberField]?: number } & {
  readonly vocabSize: number;
  /** Non-empty texts that end a repetition. Need `breakerTexts`. */
  readonly dry_sequence_breakers?: readonly string[];
  readonly breakerTexts?: TokenTextsHandle;
  readonly logitBiasIds?: Int32Array; // (biases)
  readonly logitBiasValues?: Float32Array; // (biases)
  /** A bit per token, 1: allowed. */
  readonly allowed?: Uint32Array | Int32Array; // (vocabSize / 32, rounded up)
  /** Non-empty texts that the output must not contain. Need `tokenTexts`. */
  readonly bad_words?: readonly string[];
  readonly tokenTexts?: TokenTextsHandle;
  /** Forbidden while fewer than `min_tokens` were generated. */
  readonly stopIds?: Int32Array;
  /** Forbidden between `holdEnd(true)` and `holdEnd(false)`. */
  readonly endIds?: Int32Array;
  /** -1: no log-probabilities, the default. 0: the chosen token's. k: also those of the k best. */
  readonly topLogprobs?: number;
  /** If not empty, the log-probabilities of these tokens, in this order, in place of the k best. Need `topLogprobs`. */
  readonly logprobIds?: Int32Array; // (ids)
  /** If above 0, a step returns this many of the best tokens after masks and bias, and draws none. */
  readonly candidates?: number;
  /** Log-probabilities after the whole pipeline, instead of the model's own. */
  readonly processedLogprobs?: boolean;
};

declare const textsBrand: unique symbol;

/** The bytes of each token of a vocabulary, shared by plans. */
export type TokenTextsHandle = { readonly [textsBrand]: true };

declare const planBrand: unique symbol;

/** An immutable plan, shared by the samplers of a request. */
export type SamplerPlanHandle = { readonly [planBrand]: true };

/** The sampling state of one sequence: counts, random stream, the beginnings of bad words. */
export type SamplerHandle = {
  /** Prompt tokens count for the repetition penalty and DRY only. */
  acceptPrompt(ids: Int32Array): void;
  /** Accepts a generated token. `surprise` is that of its draw, which updates mirostat and adaptive-p. Absent if it was not drawn. */
  accept(id: number, surprise?: number): void;
  /** Forbids the plan's `endIds` until it is called with false. */
  holdEnd(isHeld: boolean): void;
  /** Makes these the next tokens, regardless of masks and draws. */
  force(ids: Int32Array): void;
};

/** The sampler's part of the addon. */
export type SamplerAddon = {
  readonly TokenTexts: new (
    bytes: Uint8Array, // all texts, one after the other
    offsets: Uint32Array, // (tokens + 1)
  ) => TokenTextsHandle;
  readonly SamplerPlan: new (options: SamplerPlanOptions) => SamplerPlanHandle;
  /** Makes a copy of a sampler in its current state, or a sampler of a plan and the lowest 64 bits of a seed. */
  readonly Sampler: (new (
    sampler: SamplerHandle,
  ) => SamplerHandle) &
    (new (
      plan: SamplerPlanHandle,
      seed: bigint,
    ) => SamplerHandle);
  /** Numbers in [0, 1) at places of a seed's random stream, from `position` on: what samplers draw with. */
  uniforms(seed: bigint, position: number, count: number): Float64Array;
  /** The fields of a plan that are numbers: those of requests go in as they are. */
  readonly samplerFields: readonly string[];
};
