/** A model file in memory -> its facts and a backend: the same type for every engine. */
import type { Kernels, ContextLimits as NativeLimits, NativeProjector } from '../native/index.ts';
import type { SamplingDefaults } from '../sampling/index.ts';
import type { Vocabulary } from '../structured/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { Backend } from './backend.ts';

/** Limits of a backend. */
export type ContextSettings = NativeLimits & {
  /** Bytes that checkpoints may take, see {@link Backend.saveCheckpoint}. Default: none. */
  readonly checkpointBytes?: number;
};

/** What of a sequence's cache cannot be cut. */
export type StateFacts = {
  /** Bytes of its recurrent state; 0: there is none. */
  readonly stateBytes: number;
  /** Whether that can be taken back by some tokens. */
  readonly takesBack: boolean;
  /** Bytes of one checkpoint; 0: the cache can be cut everywhere. */
  readonly checkpointSize: number;
};

/** Matrices among which the tokens of a model choose. */
export type ExpertFacts = {
  /** Layers that have some. */
  readonly layers: number;
  /** Of a layer. */
  readonly count: number;
  /** Of a token in a layer. */
  readonly used: number;
};

/** What makes scores of a model's states, and the form of its input. */
export type ScoreHead = {
  /** Of its numbers, in order; empty: it makes one, which has no name. */
  readonly labels: readonly string[];
  /** Whether its numbers are probabilities already. */
  readonly hasSoftmax: boolean;
  /** A text around `{query}` and `{document}`; empty: these tokens are. */
  readonly template: string;
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
};

/** A model in memory: its facts, and what computes it. */
export interface LoadedModel {
  /** Engine and model, for answers. */
  readonly fingerprint: string;
  /** Files that identify the model by their content. */
  readonly files: readonly string[];
  readonly tokenizer: Tokenizer;
  /** Tokens of the context that the model was trained for. */
  readonly contextLength: number;
  /** Empty: it has none. */
  readonly chatTemplate: string;
  /** The variant for requests with tools; empty: there is only one. */
  readonly toolTemplate: string;
  readonly defaults: SamplingDefaults;
  /** Bytes that one token takes in the KV cache. */
  readonly kvBytesPerToken: number;
  /** What of its caches cannot be cut. */
  readonly state: StateFacts;
  /** Null: it has no experts, or does not say which ones tokens take. */
  readonly experts: ExpertFacts | null;
  /** Whether the KV cache may be non-unified, see {@link BackendLimits.isKvUnified}. */
  readonly supportsNonUnifiedKv: boolean;
  /** Whether the KV cache may be unified. */
  readonly supportsUnifiedKv: boolean;
  /** Whether a unified KV cache is the faster one: its attention reads the cells of one sequence, and those that several share once. */
  readonly prefersUnifiedKv: boolean;
  /** Whether it has layers with a sliding window, whose KV cache may be small, see {@link ContextSettings.isWindowCacheFull}. */
  readonly supportsSmallWindow: boolean;
  /** Kernels that run its matmuls. */
  readonly kernels: Kernels;
  /** Whether it runs fastest on one thread. */
  readonly isTiny: boolean;
  /** The vocabulary as grammars need it; made once. */
  vocabulary(): Promise<Vocabulary>;
  /** Opens what it sees with, if that is a part of the model; null: it is not. `notice` gets a line about what takes long. */
  openVision?(notice: (line: string) => void): Promise<NativeProjector | null>;
  /** Makes the backend. Fails with `OUT_OF_MEMORY` when its cache cannot fit. */
  createBackend(limits: ContextSettings): Promise<Backend>;
  close(): void | Promise<void>;
}
