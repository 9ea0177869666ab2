/** A step -> sampled tokens: the contract of backends. A step is edits of the cache, one forward pass and one sampled token per row. */
import type {
  ContextLimits as NativeLimits,
  NativeModel,
  NativeStepInput,
  StepRows,
} from '../native/index.ts';

/** Limits of a backend. */
export type ContextSettings = NativeLimits & {
  /** Bytes that checkpoints may take, see {@link Backend.saveCheckpoint}. Default: none. */
  readonly checkpointBytes?: number;
};

/** Kinds of cache edits in {@link Step.memoryEdits}. */
export const MEMORY_REMOVE = 0;
export const MEMORY_COPY = 1;
/** The state of a checkpoint (its number in the place of the target) for a slot, whose cells from the position on are removed. */
export const MEMORY_RESTORE = 2;
/** Frees a checkpoint: its number in the place of the target. */
export const MEMORY_FORGET = 3;

/** Maximum number of tokens of one pass. A larger step takes several passes. */
export const PASS_TOKENS = 512;

/** The adapter number of a step on the model's own weights. */
export const NO_ADAPTER = 0;

/** A sample whose row JavaScript edits between masks and penalties. */
export type RowEdit = {
  /** Index into {@link Step.samplers}. */
  readonly sample: number;
  /** Memory for the row, (vocab). Called just before the row is written. */
  row(): Float32Array;
  /** Edits the row in that memory. Returns false if it must not be sampled from. */
  edit(): boolean;
};

/** One forward pass over tokens of many sequences. */
export type Step = Omit<NativeStepInput, 'hooked'> & {
  readonly rowEdits: readonly RowEdit[]; // (edits) by ascending sample
};

/**
 * The result of a step: columns, one entry per sample or score. If `isAhead`, the last sampled token of each sequence is
 * already computed, or will be before anything else. It is then in the cache, whether or not a step asks for it.
 */
export type StepResult = StepRows;

/** Sizes and abilities of a backend. Slots are small integers, each for the cache of one sequence. */
export type BackendLimits = {
  /** Cells of the cache. */
  readonly kvTokens: number;
  /** See {@link ContextLimits.isKvUnified}. */
  readonly isKvUnified: boolean;
  /** Maximum number of tokens of one step. */
  readonly batchTokens: number;
  /** Maximum number of rows of logits in one step. */
  readonly outputRows: number;
  /** Number of rows that are computed together. A partly filled tile costs as much as a full one. */
  readonly rowTile: number;
  /** Slots are 0 to slotCount - 1. */
  readonly slotCount: number;
  /**
   * Number of a slot's last tokens that can be cut off. Infinity means any number, and that its cache can be copied in part. For models
   * with recurrent state it is small or 0, and only tokens that the last step computed after the slot's first one can be cut. Their
   * run-ahead steps cannot be undone either: see {@link StepResult}.
   */
  readonly rollbackTokens: number;
  /**
   * Number of a sequence's last tokens whose cells are kept; 0 means all. In a longer sequence, cells of older tokens may be reused, so its
   * cache can no longer be cut or copied in part. The tokens of the last step can be cut if they were one pass, otherwise all but one: a
   * pass reuses cells outside the window of its first token.
   */
  readonly windowTokens: number;
  /** Number of last tokens whose cells are saved in all layers; 0 means all. A loaded cache can be cut by one token only. */
  readonly savedWindow: number;
  /** The head that drafts from the model's hidden states, or null. */
  readonly draftHead: DraftHead | null;
};

/** Layers of the model for multi-token prediction, or a file beside it. */
export type DraftHead = {
  readonly kind: 'own' | 'file';
  /** Maximum number of draft tokens per step. */
  readonly mostDrafts: number;
};

/** A loaded file that drafts for another model: EAGLE-3, or an assistant. */
export type HeadFile = {
  readonly model: NativeModel;
  /** Layers of the other model whose inputs the file reads. If the list is empty, it reads the last states and shares the cache. */
  readonly layers: readonly number[];
};

/** Owns device memory and computes. */
export interface Backend extends BackendLimits {
  readonly vocabSize: number;
  /** Shape of a slot's cache. The result of {@link saveSlot} can be loaded by a backend with the same shape. */
  readonly cacheShape: string;
  /** CPU threads of the last step. */
  readonly threads: number;
  /**
   * Runs one step; steps must not overlap. Rejects with code `ABORTED` after {@link abortStep}: the cache may then
   * hold a part of the step, which the caller removes. With code `KV_FULL` nothing was computed.
   */
  step(step: Step): Promise<StepResult>;
  /**
   * Keeps the part of a slot's cache that cannot be cut, under a number by which edits refer to it. Returns its bytes, or 0 if it could
   * not be kept. Must not be called while a step runs.
   */
  saveCheckpoint(slot: number, number: number): Promise<number>;
  /** Makes the edits, then copies the whole cache of a slot. Not while a step runs. */
  saveSlot(memoryEdits: Int32Array, slot: number): Promise<Uint8Array>;
  /** Makes the edits, then loads a saved cache into a slot that is empty. On failure the slot stays empty. */
  loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void>;
  /**
   * Loads a LoRA file beside the weights. Returns its number, which is never reused. Must not be called while a step runs. Fails with
   * `MODEL_INVALID` if it is not an adapter of this model, and with `UNSUPPORTED` if adapters are not supported.
   */
  loadAdapter(path: string): Promise<number>;
  /** Combines loaded adapters, each with a factor of its output. Returns the number of the mix. Must not be called while a step runs. */
  mixAdapters(adapters: readonly number[], scales: readonly number[]): Promise<number>;
  /** Frees an adapter or a mix. Later steps must not refer to it. Must not be called while a step runs. */
  freeAdapter(adapter: number): Promise<void>;
  /**
   * Lets a file draft from now on. No other head may read the model's states. Must not be called while a step runs. Fails with
   * `UNSUPPORTED` if the engine does not keep the states that the file reads, and with `BACKEND_FAILED` if the caches of all slots are lost.
   */
  attachHead(file: HeadFile): Promise<void>;
  /** Detaches the file, which then no longer drafts. Must not be called while a step runs. */
  detachHead(): Promise<void>;
  /** Ends the running step early, or the run-ahead step. */
  abortStep(): void;
  close(): Promise<void>;
}
