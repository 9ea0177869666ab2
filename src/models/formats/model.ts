/** A model file in memory -> its facts and a backend: the same type for every engine. */

import type { Backend, ContextSettings } from '../../engine/backend/index.ts';
import type { Kernels, NativeProjector } from '../../engine/native/index.ts';
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import type { Gpu } from '../../protocol/index.ts';
import type { SamplingDefaults } from '../../sampling/index.ts';
import type { Vocabulary } from '../../structured/index.ts';

/** State of a sequence that cannot be cut at any token. */
export type StateFacts = {
  /** Bytes of the recurrent state; 0 if there is none. */
  readonly stateBytes: number;
  /** True if that state can be rolled back by some tokens. */
  readonly takesBack: boolean;
  /** Bytes of one checkpoint; 0 if the cache can be cut at any token. */
  readonly checkpointSize: number;
};

/** Expert matrices of a model. Each token uses some of them. */
export type ExpertFacts = {
  /** Number of layers with experts. */
  readonly layers: number;
  /** Number of experts of a layer. */
  readonly count: number;
  /** Number of experts that a token uses in a layer. */
  readonly used: number;
};

/** Head that turns a model's states into scores, and the form of its input. */
export type ScoreHead = {
  /** Names of its scores, in order. Empty if it computes one score without a name. */
  readonly labels: readonly string[];
  /** True if its scores are already probabilities. */
  readonly hasSoftmax: boolean;
  /** Template of the input with `{query}` and `{document}`. Empty: the tokens below are put around them. */
  readonly template: string;
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
};

/** Options for opening a model's encoder of pictures and sounds. */
export type VisionOptions = {
  /** Path of the projector file. Null if there is none. */
  readonly projector: string | null;
  readonly gpu: Gpu;
  /** Null for the model's default. */
  readonly threads: number | null;
  /** Number of tokens of one picture. Default: the limits in the file. */
  readonly min?: number | undefined;
  readonly max?: number | undefined;
};

/** A model in memory: its facts, and methods that create its backends. */
export interface LoadedModel {
  /** Identifies engine and model in answers. */
  readonly fingerprint: string;
  /** Files that identify the model by their content. */
  readonly files: readonly string[];
  readonly tokenizer: Tokenizer;
  /** Context length in tokens that the model was trained for. */
  readonly contextLength: number;
  /** Empty if the model has none. */
  readonly chatTemplate: string;
  /** The variant for requests with tools. Empty if there is only one template. */
  readonly toolTemplate: string;
  readonly defaults: SamplingDefaults;
  /** Entries of a GGUF file's header that are no lists, as text. Absent for other formats. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Bytes that one token takes in the KV cache. */
  readonly kvBytesPerToken: number;
  /** State of its caches that cannot be cut at any token. */
  readonly state: StateFacts;
  /** Null if the model has no experts, or does not report which ones tokens use. */
  readonly experts: ExpertFacts | null;
  /** True if the KV cache may be non-unified, see {@link BackendLimits.isKvUnified}. */
  readonly supportsNonUnifiedKv: boolean;
  /** True if the KV cache may be unified. */
  readonly supportsUnifiedKv: boolean;
  /** True if attention selects blocks of tokens, for which each sequence needs the cells of a whole context. Absent: false. */
  readonly selectsBlocks?: boolean;
  /** True if a unified KV cache is faster: its attention reads only the cells of one sequence, and shared cells once. */
  readonly prefersUnifiedKv: boolean;
  /** True if layers have a sliding window, whose KV cache may be small, see {@link ContextSettings.isWindowCacheFull}. */
  readonly supportsSmallWindow: boolean;
  /** Kernels that compute its matmuls. */
  readonly kernels: Kernels;
  /** Kernels of attention in the first pass; null before it. */
  readonly attention: Kernels | null;
  /** True if it runs fastest on one thread. */
  readonly isTiny: boolean;
  /** Returns the vocabulary for grammars. It is built once. */
  vocabulary(): Promise<Vocabulary>;
  /** Opens the encoder of pictures and sounds. Returns null if the model has none. Fails with `MODEL_INVALID`. */
  openVision(options: VisionOptions): Promise<NativeProjector | null>;
  /** Creates the backend. Fails with `OUT_OF_MEMORY` if its cache does not fit. */
  createBackend(limits: ContextSettings): Promise<Backend>;
  close(): void | Promise<void>;
}
