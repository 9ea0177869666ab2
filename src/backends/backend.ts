/** A step -> sampled tokens: the contract of what computes. A step is edits of the cache, one forward pass and one sampled token per row. */
import type { NativeModel, NativeStepInput, StepRows } from '../native/index.ts';

/** Kinds of cache edits in {@link Step.memoryEdits}. */
export const MEMORY_REMOVE = 0;
export const MEMORY_COPY = 1;
/** The state of a checkpoint (its number in the place of the target) for a slot, whose cells from the position on are removed. */
export const MEMORY_RESTORE = 2;
/** Frees a checkpoint: its number in the place of the target. */
export const MEMORY_FORGET = 3;

/** Tokens that the engine computes in one pass at most; a larger step has several. */
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
 * The result of a step: columns, one entry per sample or score. Where it `isAhead`, the token that was sampled last for each sequence
 * is computed already, or will be before anything else: the cache holds it, whether a step asks for it or not.
 */
export type StepResult = StepRows;

/** Sizes and abilities of a backend. Slots are small integers, each for the cache of one sequence. */
export type BackendLimits = {
  /** Cells of the cache. */
  readonly kvTokens: number;
  /** See {@link ContextLimits.isKvUnified}. */
  readonly isKvUnified: boolean;
  /** Tokens of one step at most. */
  readonly batchTokens: number;
  /** Rows of logits in one step at most. */
  readonly outputRows: number;
  /** Rows that are computed together: a tile that is filled in part costs as much as a full one. */
  readonly rowTile: number;
  /** Slots are 0 to slotCount - 1. */
  readonly slotCount: number;
  /**
   * How many of a slot's last tokens can be cut off. Infinity: any, and its cache can be copied in part. Models with recurrent state:
   * fewer or none, and only those that the last step computed behind the first one of the slot. Their run-ahead steps cannot be
   * taken back either: see {@link StepResult}.
   */
  readonly rollbackTokens: number;
  /**
   * Tokens of a sequence, the last ones, whose cells it keeps; 0: all. Once it is this long, the cells of tokens outside may be taken
   * by others, so its cache can no longer be cut or copied in part. What a step computed last can be cut where all of it was one pass, or
   * but for one token: a pass takes cells outside of the window of its own first token.
   */
  readonly windowTokens: number;
  /** Tokens, the last ones, whose cells are saved in all layers; 0: all. What is loaded can be cut by one token only. */
  readonly savedWindow: number;
  /** What drafts from the model's own hidden states; null: nothing does. */
  readonly draftHead: DraftHead | null;
};

/** Layers of the model for multi-token prediction, or an EAGLE-3 file beside it. */
export type DraftHead = {
  readonly kind: 'own' | 'eagle3';
  /** Drafts of one step at most. */
  readonly mostDrafts: number;
};

/** A loaded file that drafts for another model. */
export type EagleFile = {
  readonly model: NativeModel;
  /** Of the other model, whose inputs it reads. */
  readonly layers: readonly number[];
};

/** Owns device memory and computes. */
export interface Backend extends BackendLimits {
  readonly vocabSize: number;
  /** Shape of a slot's cache: the result of {@link saveSlot} can be loaded where this is the same. */
  readonly cacheShape: string;
  /** CPU threads of the last step. */
  readonly threads: number;
  /**
   * Runs one step; steps must not overlap. Rejects with code `ABORTED` after {@link abortStep}: the cache may then
   * hold a part of the step, which the caller removes. With code `KV_FULL` nothing was computed.
   */
  step(step: Step): Promise<StepResult>;
  /**
   * Keeps what of a slot's cache cannot be cut, under a number by which edits name it. Returns its bytes; 0: it could not be kept. Not
   * while a step runs.
   */
  saveCheckpoint(slot: number, number: number): Promise<number>;
  /** Makes the edits, then copies the whole cache of a slot. Not while a step runs. */
  saveSlot(memoryEdits: Int32Array, slot: number): Promise<Uint8Array>;
  /** Makes the edits, then loads a saved cache into a slot that is empty. On failure the slot stays empty. */
  loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void>;
  /**
   * Loads a LoRA file beside the weights. Returns its number, which is never used again. Not while a step runs. Fails with
   * `MODEL_INVALID` when it is no adapter of this model, and with `UNSUPPORTED` where adapters are not supported.
   */
  loadAdapter(path: string): Promise<number>;
  /** A number for several loaded adapters as one, each with a factor of its output. Not while a step runs. */
  mixAdapters(adapters: readonly number[], scales: readonly number[]): Promise<number>;
  /** Frees an adapter or a mix. No later step may name it. Not while a step runs. */
  freeAdapter(adapter: number): Promise<void>;
  /**
   * An EAGLE-3 file drafts from now on, where nothing else reads the model's states. Not while a step runs. Fails with `UNSUPPORTED` where
   * the engine does not keep the states that it reads.
   */
  attachHead(file: EagleFile): Promise<void>;
  /** It drafts no more. Not while a step runs. */
  detachHead(): Promise<void>;
  /** Ends the running step early, or the run-ahead step. */
  abortStep(): void;
  close(): Promise<void>;
}
