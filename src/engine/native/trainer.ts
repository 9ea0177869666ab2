/** Types of the trainer's part of the addon. */
import type { PackedRow } from '../../protocol/index.ts';

/** One linear layer's LoRA factors: its output gains (alpha / rank) b (a x). Those of experts are stored one after the other. */
export type LoraFactors = {
  readonly a: Float32Array; // (experts, rank, in)
  readonly b: Float32Array; // (experts, out, rank)
  /** Default 1. */
  readonly experts?: number | undefined;
};

/** LoRA factors by the layer's name in the GGUF file, for example `blk.0.attn_q`. */
export type AdapterWeights = Readonly<Record<string, LoraFactors>>;

/** One matrix per factor: its values, or the optimizer's state about them. */
export type NativeColumn = 'value' | 'gradient' | 'firstMoment' | 'secondMoment';

/** Facts about the model that is trained. */
export type ModelFacts = {
  readonly architecture: string;
  readonly device: string;
  readonly vocabularySize: number;
  readonly contextSize: number;
  readonly layerCount: number;
  readonly headCount: number;
  readonly kvHeadCount: number;
  /** Heads of its gated delta nets; null: it has none. */
  readonly deltaNet: { readonly keyHeads: number; readonly valueHeads: number } | null;
  /** Its layers with experts, how many a layer has, and how many of them a token takes; null: it has none. */
  readonly routing: { readonly layers: number; readonly count: number; readonly used: number } | null;
  /** The adapted matrices, with their names, sizes and numbers of experts. 1 means a matrix without experts. */
  readonly modules: readonly {
    readonly name: string;
    readonly in: number;
    readonly out: number;
    readonly experts: number;
  }[];
};

/** Settings of one optimizer step. */
export type NativeStep = {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly maxGradNorm: number;
};

/** An opened trainer. Calls are made one after the other. */
export type NativeTrainer = {
  readonly info: ModelFacts;
  checkMemory(row: PackedRow): Promise<void>;
  forward(
    row: PackedRow,
    gradients: boolean,
    adapterOff: boolean,
  ): Promise<{ logprobs: Float32Array; entropies: Float32Array }>;
  backward(gradLogprobs: Float32Array): Promise<void>;
  step(options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }>;
  /** Copies of the numbers of all modules, or of one. */
  read(column: NativeColumn, module?: string): AdapterWeights;
  write(column: NativeColumn, weights: AdapterWeights): void;
  zeroGradients(): void;
  resetOptimizer(): void;
  /** Optimizer steps taken; sets them when given. */
  stepCount(value?: number): number;
  memory(): { readonly bytes: number; readonly keptLayers: number };
  abort(): void;
  clearAbort(): void;
  close(): void;
};

/** One trained tensor of a model file. */
export type NativeParameter = {
  readonly name: string; // "blk.0.attn_q.weight"
  readonly type: string; // in the file, as ggml names it
  readonly in: number;
  readonly out: number;
  readonly offset: number; // in the file, bytes
};

/** An opened trainer of all weights. Calls are made one after the other. */
export type NativeFullTrainer = {
  readonly parameters: readonly NativeParameter[];
  readonly vocabularySize: number;
  readonly contextSize: number;
  /** Log-probability of each target. */
  score(row: PackedRow): Promise<Float32Array>;
  /** The same, and gathers the gradient of the sum of -weight x log-probability. */
  addGradients(row: PackedRow, targetWeights: Float32Array): Promise<Float32Array>;
  step(options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }>;
  read(column: 'value' | 'gradient', name: string): Float32Array;
  write(values: Readonly<Record<string, Float32Array>>): void;
  zeroGradients(): void;
  abort(): void;
  clearAbort(): void;
  close(): void;
};

/** Options for opening a trainer. */
export type NativeTrainerOptions = {
  readonly model: string;
  readonly device: string;
  readonly threads: number;
  readonly rank: number;
  readonly alpha: number;
  readonly modules: readonly string[];
  readonly contextSize: number;
  readonly memoryBudget: number;
  readonly isWide: boolean;
};

/** Entries of a GGUF file's header: keys with texts, and keys with numbers. */
export type HeaderEntries = {
  readonly textKeys: readonly string[];
  readonly texts: readonly string[];
  readonly numberKeys: readonly string[];
  readonly numbers: Float32Array;
};

/** The trainer's part of the addon. */
export type TrainerAddon = {
  openFullTrainer(
    options: Pick<NativeTrainerOptions, 'model' | 'threads' | 'contextSize'> & { readonly isNarrow: boolean },
  ): Promise<NativeFullTrainer>;
  openTrainer(options: NativeTrainerOptions): Promise<NativeTrainer>;
  /** Returns the bytes for training on a row of this size beside the weights, if no activations are kept. Reads the file's header. */
  trainingBytes(options: NativeTrainerOptions, tokens: number): Promise<number>;
  /** Names of the layers that `modules` selects. Reads the file's header. */
  trainedModules(options: NativeTrainerOptions): Promise<readonly string[]>;
  /** Returns the reason why a GGUF file cannot be trained. Empty if it can be. */
  whyNotTrainable(model: string): Promise<string>;
  /**
   * Writes a model's GGUF file with what adapters (GGUF LoRA files, each with a scale) add to its weights. `same`: in the types
   * that it has; `wide`: in F16, `widest`: in F32. Its header gets the entries.
   */
  mergeModel(
    options: HeaderEntries & {
      model: string;
      files: readonly string[];
      scales: Float32Array;
      types: 'same' | 'wide' | 'widest';
      threads: number;
      to: string;
    },
  ): Promise<void>;
  /**
   * Adds the numbers of tensors to the end of `to`, with what the adapters add. `pairedHeads`: rows that lie in so many heads, in
   * pairs, are written in halves; 0: they stay. `offsets`: added to every number.
   */
  appendTensors(options: {
    model: string;
    files: readonly string[];
    scales: Float32Array;
    names: readonly string[];
    pairedHeads: Int32Array;
    offsets: Float32Array;
    type: 'f32' | 'f16' | 'bf16';
    threads: number;
    to: string;
  }): Promise<void>;
  /** Writes a GGUF file in the mix of types that llama.cpp numbers so. */
  quantizeModel(options: { model: string; fileType: number; threads: number; to: string }): Promise<void>;
  /** The bytes of a weight of the named type (`q4_K`), and the type's number in GGUF files. */
  quantizeRows(type: string, values: Float32Array, rowSize: number): Uint8Array & { readonly type: number };
};
