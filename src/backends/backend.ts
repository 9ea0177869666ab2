/** The only door to the arithmetic: one step is edits of the cache, one forward pass and one sampled token per row. */
import type { Handle, SampledRows, SamplerHandle } from '../native/index.ts';

/** Kinds of cache edits, as they stand in {@link Step.memoryEdits}. */
export const MEMORY_REMOVE = 0;
export const MEMORY_COPY = 1;

/** The adapter number of a step on the model's own weights. */
export const NO_ADAPTER = 0;

/** A sample whose row JavaScript edits between masks and penalties. */
export type RowEdit = {
  /** Index into {@link Step.samplers}. */
  readonly sample: number;
  /** Where the row goes: (vocab). Asked for just before it is written. */
  row(): Float32Array;
  /** Edits what stands there. False: it is not to be sampled from. */
  edit(): boolean;
};

/** One forward pass over tokens of many sequences, laid end to end. */
export type Step = {
  /** (edits, 5): kind, slot, target slot, from position, to position (-1: the end). Done before the pass. */
  readonly memoryEdits: Int32Array;
  readonly tokens: Int32Array; // (total)
  readonly positions: Int32Array; // (total)
  readonly sequences: Int32Array; // (total) the slot each token belongs to
  readonly sampleRows: Int32Array; // (samples) index into tokens whose logits the sampler sees
  readonly samplers: readonly SamplerHandle[]; // (samples) several may share one row
  /** Grammars that hold the samples; null: that sample is free. Absent when all are. */
  readonly matchers?: readonly (Handle | null)[]; // (samples)
  readonly rowEdits: readonly RowEdit[]; // (edits) by ascending sample
  readonly scoreRows: Int32Array; // (scores, 3): index into tokens, scored token, number of alternatives
  /** The one adapter that all its tokens go through, as {@link Backend.loadAdapter} numbered it. */
  readonly adapter: number;
  /**
   * Whether the next step is likely to take just the tokens that this one samples, one for each of its sequences: it may be
   * begun before it is asked for.
   */
  readonly mayGoOn: boolean;
};

/** What a step gives back: columns, one entry per sample or score. */
export type StepResult = {
  readonly samples: SampledRows;
  readonly scores: SampledRows;
};

/** Owns device memory and computes. Slots are small integers, each the home of one sequence's cache. */
export interface Backend {
  readonly vocabSize: number;
  /** Cells of the cache. */
  readonly kvTokens: number;
  /**
   * Whether all slots take cells from one pool, so that a copied prefix costs nothing. Otherwise each slot has cells of
   * its own, copies copy, and a step runs fastest when its slots are neighbours.
   */
  readonly sharesCells: boolean;
  /** Tokens of one step at most. */
  readonly batchTokens: number;
  /** Rows of logits that one step may ask for. */
  readonly outputRows: number;
  /** Rows of a step that are computed together: a few more than a multiple of this many cost as much as that many more. */
  readonly rowTile: number;
  /** Slots are 0 to slotCount - 1. */
  readonly slotCount: number;
  /** Whether a slot's cache can be cut or copied at any position; false for models with recurrent state. */
  readonly canCutCache: boolean;
  /**
   * Runs one step; steps must not overlap. Rejects with code `ABORTED` after {@link abortStep}: the cache may then
   * hold a part of the step, which the caller removes. With code `KV_FULL` nothing was computed.
   */
  step(step: Step): Promise<StepResult>;
  /** Shape of a slot's cache: what {@link saveSlot} gives can be loaded where this is the same. */
  readonly cacheShape: string;
  /** The whole cache of a slot. Not while a step runs. */
  saveSlot(slot: number): Promise<Uint8Array>;
  /** Does the edits, then puts a saved cache into a slot that is empty. On failure the slot stays empty. */
  loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void>;
  /**
   * Loads a LoRA file beside the weights; steps name it by the number that comes back, which is never used again. Not while
   * a step runs. Fails with `MODEL_INVALID` when it is no adapter of this model.
   */
  loadAdapter(path: string): Promise<number>;
  /** Frees an adapter. No later step may name it. Not while a step runs. */
  freeAdapter(adapter: number): Promise<void>;
  /** Ends the running step early, or what was begun of a next one. */
  abortStep(): void;
  close(): Promise<void>;
}
