/** Types of the engine's part of the addon: model, context, step, rows of samples. */

import type { CacheType, RopeOptions } from '../../protocol/index.ts';
import type { DraftWork } from './drafts.ts';
import type { Handle } from './grammar.ts';
import type { SamplerHandle } from './sampler.ts';

/** Columns of sampled or scored rows; alternatives of all rows laid end to end. */
export type SampledRows = {
  readonly status: Uint8Array; // (rows) see ROW_STATUS
  readonly tokens: Int32Array; // (rows)
  readonly isFinal: Uint8Array; // (rows) 1: the constraint lets nothing but the end follow it and the tokens forced after it
  readonly logprobs: Float32Array; // (rows) natural logarithm; of the token
  readonly ranks: Int32Array; // (rows) 1: no token is more likely
  readonly topOffsets: Int32Array; // (rows + 1) into topIds and topLogprobs
  readonly topIds: Int32Array; // (alternatives) best first within a row
  readonly topLogprobs: Float32Array; // (alternatives)
  /** Tokens that follow the sampled one because the constraint allows no others. Present if a constraint forces tokens. */
  readonly forced?: TokenLists;
  /** Draft tokens after the sampled one and those forced after it. Present if a step has drafters. */
  readonly drafts?: TokenLists;
  /** The best tokens, best first within a row. Present if a sampler's plan asks for candidates instead of a token. */
  readonly candidates?: TokenLists & {
    readonly scores: Float32Array; // (candidates) log-softmax with bias
    readonly logprobs: Float32Array; // (candidates) the model's own
  };
};

/** Some tokens of each row, of all rows laid end to end. */
export type TokenLists = {
  readonly offsets: Int32Array; // (rows + 1)
  readonly ids: Int32Array; // (tokens)
};

/** Stands for experts that the engine did not compute: in the last layer, those of tokens without a sample or score. */
export const NO_EXPERT = 0xffff;

/** The experts of tokens, in the layers that have experts. */
export type TakenExperts = {
  readonly layers: number;
  /** Number of experts of a token in a layer. */
  readonly used: number;
  readonly ids: Uint16Array; // (tokens, layers, used)
};

/** The results of a step. */
export type StepRows = {
  readonly samples: SampledRows;
  readonly scores: SampledRows;
  /** The experts of the step's tokens, if it records them. */
  readonly experts?: TakenExperts;
  /** True if the last token of every sequence is computed, or will be in any case. */
  readonly isAhead?: boolean;
  /** The work of draft models, if any has drafted. */
  readonly drafting?: DraftWork;
};

/** Drafts of a step: columns, one entry per sample. */
export type DraftColumns = {
  /** The draft that the row stands on: the sample before has the same sampler. -1: the row is the first of its sequence. */
  readonly drafted: Int32Array; // (samples)
  /** The drafter of the tokens after the last sampled one, or null. */
  readonly drafters: readonly (Handle | null)[]; // (samples)
  /**
   * Maximum number of drafts that the next step verifies: if the last token was drafted, if another token was drafted, and if none was.
   * At least one is made, except by a draft model.
   */
  readonly limits: Int32Array; // (samples, 3)
};

/**
 * The kernels that run the matmuls of a model's weights: those of this library for an instruction set, or `plain` for the
 * engine's.
 */
export type Kernels = 'avx512' | 'avxvnni' | 'avx2' | 'i8mm' | 'dotprod' | 'plain';

/** An assumption of this library about the engine, beyond its documented interface, and the result of its check. */
export type EngineAssumption = {
  readonly name: string;
  readonly text: string;
  readonly checked: 'opening' | 'first pass' | 'use';
  /** The features that are off, or different, if it does not hold. */
  readonly without: string;
  /** Null: not checked yet. */
  readonly holds: boolean | null;
  /** Empty unless it does not hold. */
  readonly problem: string;
};

/** A loaded GGUF model. */
export type NativeModel = {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly hasRecurrentState: boolean;
  readonly hasF32Weights: boolean;
  readonly kernels: Kernels;
  /** The kernels that computed attention in the first pass; null before it. */
  readonly attention: Kernels | null;
  readonly slidingWindow: number; // tokens; 0: attention sees everything
  readonly sizeBytes: number;
  readonly parameters: number;
  readonly chatTemplate: string;
  readonly toolTemplate: string;
  readonly pairTemplate: string; // of a query and a document; empty: they are joined by special tokens
  readonly labels: readonly string[]; // of the numbers of its head
  readonly bosId: number;
  readonly eosId: number;
  readonly sepId: number;
  readonly addsBos: boolean;
  readonly addsEos: boolean;
  readonly addsSep: boolean;
  readonly tokenBytes: Uint8Array; // (bytes) of all tokens, laid end to end
  readonly tokenOffsets: Int32Array; // (vocabSize + 1)
  readonly isSpecial: Uint8Array; // (vocabSize) 1: control or unknown token
  readonly isEnd: Uint8Array; // (vocabSize) 1: ends a generation
  readonly metadata: Readonly<Record<string, string>>;
  tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Int32Array;
  /** The same off the JavaScript thread, for long texts. */
  tokenizeLong(text: string, addSpecial: boolean, parseSpecial: boolean): Promise<Int32Array>;
  close(): void;
};

/** Limits of a context. */
export type ContextLimits = {
  readonly kvTokens: number;
  /**
   * True if the KV cache is unified: all slots take cells from one pool, and a copied prefix takes none. In a non-unified
   * one, each slot has a fixed share of the cells, copies copy, and a step runs fastest on neighbouring slots.
   */
  readonly isKvUnified: boolean;
  readonly batchTokens: number;
  /** Sequences that it has a cache for at a time. */
  readonly slotCount: number;
  /** Rows of logits of one step at most; never less than one per slot. */
  readonly maxOutputs: number;
  /** At most. */
  readonly threads: number;
  /**
   * Number of last tokens of a sequence with recurrent state that can be undone. Each takes memory for another state. The engine may allow
   * fewer. Default: none.
   */
  readonly rollbackTokens?: number;
  /** False: layers with a sliding window have cells for the window and a step only, with a non-unified cache. Default true. */
  readonly isWindowCacheFull?: boolean;
  /** If true, a context is refused if its logits may depend on the other tokens of a batch. Default false. */
  readonly isDeterministic?: boolean;
  /** If true, the model's head drafts, if it has one. Default false. */
  readonly hasDraftHead?: boolean;
  /** Rows of the largest medium that one pass must hold. Absent: the model takes text only. */
  readonly wholeRows?: number;
};

/** Options for making a context. */
export type ContextOptions = Omit<ContextLimits, 'slotCount'> & {
  readonly maxSequences: number;
  readonly fusedAttention: boolean;
  /** True: attention stays fused where the engine's rounds. Default false. */
  readonly keepsFusion?: boolean;
  readonly cacheOnGpu: boolean;
  readonly cacheType: CacheType;
  /** Bytes that the cache is expected to take, without that of the model's own draft head. */
  readonly cacheBytes?: number;
  readonly rope?: RopeOptions | null;
};

/** Rows of embeddings of a picture or a sound, in the place of tokens. */
export type StepMedia = {
  /** Index into the tokens of a step; what stands there is not read. */
  readonly at: number;
  readonly count: number;
  /** The embeddings of the whole medium, as a projector encoded them. */
  readonly rows: Handle;
  /** Index of the first of these rows within the medium. */
  readonly first: number;
  /** (4, count) with M-RoPE, else empty: the positions of the step hold. */
  readonly positions: Int32Array;
  /** True if its rows attend to each other, so that all must be in one step. */
  readonly isNonCausal: boolean;
};

/** Rows of logits to sample from, and to score. */
export type RowsToSample = {
  readonly sampleRows: Int32Array; // (samples) whose logits the sampler reads
  readonly samplers: readonly SamplerHandle[]; // (samples) several may share one row
  /** Grammars that constrain the samples; null: none. Absent when all are null. */
  readonly matchers?: readonly (Handle | null)[]; // (samples)
  /**
   * Drafts to check, and drafters. Tokens of a sequence that are drafts have a sample each, behind the one of its last token.
   * The cache may hold drafts that were not sampled: the next step's edits cut them. Absent: nothing drafts.
   */
  readonly drafts?: DraftColumns;
  /** Samples whose rows wait for `finish`, ascending. Absent: none. */
  readonly hooked?: Int32Array;
  readonly scoreRows: Int32Array; // (scores, 3): the row, scored token, number of alternatives
};

/** One forward pass over tokens of many sequences, laid end to end. Its rows are indexes into tokens. */
export type NativeStepInput = RowsToSample & {
  /** The one adapter or mix for all tokens, as `loadAdapter` or `mixAdapters` numbered it; 0: none. */
  readonly adapter: number;
  /** (edits, 5): kind, slot, target slot, from position, to position (-1: the end). Done before the pass. */
  readonly memoryEdits: Int32Array;
  readonly tokens: Int32Array; // (total)
  readonly positions: Int32Array; // (total)
  readonly sequences: Int32Array; // (total) the slot of each token
  /** Slots whose tokens the model's draft head computes, too, so that it can draft for them. Absent: none. */
  readonly followed?: Int32Array;
  /** Media among the tokens, ascending. Absent when there are none. */
  readonly media?: readonly StepMedia[];
  /**
   * True if the next step is likely to have exactly the tokens that this one samples, with the drafts after them. The
   * backend may then compute it ahead: a run-ahead step.
   */
  readonly mayRunAhead: boolean;
  /** If true, the result has the experts of each token. Default false. */
  readonly recordsExperts?: boolean;
};

/** The hooked rows of the last step, between its two halves; `index` counts them. */
export type HookedRows = {
  /** Copies a masked and biased row out. */
  readRow(index: number, row: Float32Array): void;
  /** Copies an edited row back. */
  writeRow(index: number, row: Float32Array): void;
  /** Samples these rows, given in ascending order. Returns all samples of the step, including theirs. */
  finish(indices: Int32Array): Promise<SampledRows>;
};

/** The cache and the step thread on one model. Its calls are those of a backend. */
export type NativeContext = HookedRows & {
  readonly rollbackTokens: number;
  readonly windowTokens: number; // last tokens of a sequence whose cells it keeps; 0: all
  readonly hasDraftHead: boolean;
  readonly threads: number; // of the last pass; 0 when it is closed
  readonly mostDrafts: number; // of that head in one step; 0: any number
  step(step: NativeStepInput): Promise<StepRows>;
  saveCheckpoint(sequence: number, number: number): Promise<number>;
  saveSequence(memoryEdits: Int32Array, sequence: number): Promise<Uint8Array>;
  loadSequence(memoryEdits: Int32Array, sequence: number, state: Uint8Array): Promise<void>;
  loadAdapter(path: string): Promise<number>;
  mixAdapters(adapters: Uint32Array, scales: Float32Array): Promise<number>;
  freeAdapter(adapter: number): Promise<void>;
  /** Attaches a file that drafts, in place of the model's own head. It reads the inputs of `layers` or, without any, the last states and the cache. */
  attachHead(model: NativeModel, layers: Uint32Array): Promise<void>;
  detachHead(): Promise<void>;
  abort(): void;
  close(): Promise<void>;
};

/** Options of computing embeddings. */
export type EmbedderOptions = {
  readonly batchTokens: number; // of one call at most
  readonly maxSequences: number;
  readonly threads: number;
  readonly fusedAttention: boolean;
  readonly hasHead?: boolean; // what comes out is a number for each label, or one
  readonly isLast: boolean; // a causal model whose vector is that of the last token
};

/** Token sequences -> one vector each, in a separate context of a model. Calls wait for each other. */
export type NativeEmbedder = {
  readonly size: number; // numbers of a vector
  /** `tokens`: of all sequences, end to end. -> (sequences, size) */
  embed(tokens: Int32Array, lengths: Int32Array): Promise<Float32Array>;
  /** Ends the running call with ABORTED. */
  close(): Promise<void>;
};

/** Samples rows of logits that were computed elsewhere. One call at a time. */
export type NativeRowSampler = HookedRows & {
  /** `logits`: (rows, vocabulary), may be shared memory; must not change until `finish` when rows are hooked. */
  sample(step: RowsToSample & { readonly logits: Float32Array }): Promise<StepRows>;
};

/** A device that computes. */
export type Device = {
  readonly name: string;
  readonly description: string;
  readonly kind: 'cpu' | 'gpu' | 'other';
  readonly freeBytes: number;
  readonly totalBytes: number;
};

/** The engine's part of the addon. */
export type EngineAddon = {
  openLibrary(
    folder: string,
    wantedVersion: string,
    extraBackends: readonly string[],
    largestBuffer: number, // bytes; 0: of any size
  ): Promise<void>;
  /** Fails with `NATIVE_UNAVAILABLE` if another release of the engine was opened in this process after ours. */
  requireOneRelease(): void;
  canOpenSystemLibrary(name: string): boolean;
  devices(): Device[];
  /** Sends every log line of the engine to `callback`; returns a function that stops it. Levels: 1 debug, 2 info, 3 warning, 4 error. */
  setLog(callback: (level: number, text: string) => void): () => void;
  /** Null before `openLibrary`. */
  engineState(): {
    readonly version: string;
    readonly folder: string;
    readonly assumptions: readonly EngineAssumption[];
  } | null;
  /** The first callback of the process gets a line for each assumption that does not hold. */
  onBrokenAssumption(callback: (line: string) => void): void;
  /** Ends every thread of this JavaScript environment; its contexts are closed from then on. */
  stopThreads(): void;
  /** Reads the header of a GGUF file. */
  loadModel(options: {
    path: string;
    useGpu: boolean;
    gpuLayers?: number | undefined;
    cpuTensors?: string | undefined; // regular expression: weights with such names stay in main memory
    devices?: readonly string[] | undefined; // names of GPUs
    tensorSplit?: Float32Array | undefined; // (devices) shares
    packs: boolean; // weights for our own matmuls
    isUnfused?: boolean; // true: the engine cannot fuse attention of this architecture
    mmap?: boolean | undefined; // map the file; undefined: where the engine can
    loadHeads?: boolean | undefined; // its layers for multi-token prediction, too
    mlock?: boolean | undefined; // keep the weights from being swapped out
    onProgress?: ((fraction: number) => void) | undefined;
    cancelled: Int32Array;
  }): Promise<NativeModel>;
  /** The vocabulary of a loaded model, as the grammar engine takes it. */
  modelTokens(model: NativeModel): Promise<{
    bytes: Uint8Array; // of all tokens, one after the other
    offsets: Uint32Array; // (tokens + 1)
    ends: Int32Array;
    specials: Int32Array;
    tokenizer: Handle; // fails once the model is closed
  }>;
  /** The tokenizer of a GGUF file, without its weights. */
  openTokenizer(path: string): Promise<Handle>;
  createEmbedder(model: NativeModel, options: EmbedderOptions): Promise<NativeEmbedder>;
  createContext(model: NativeModel, options: ContextOptions): Promise<NativeContext>;
  /** `model` drafts for sequences of a model with `sampledTokens` token ids, as long as they have at most `longest` tokens. */
  createDraftModel(
    model: NativeModel,
    options: ContextOptions & { readonly sampledTokens: number; readonly longest: number },
  ): Promise<Handle>;
  /** Frees the context of a draft model, which then no longer drafts. */
  closeDraftModel(model: Handle): Promise<void>;
};
