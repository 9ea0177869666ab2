/** Types of the reports of a service: engine statistics, model cards, loaded models, named adapters. */
import type { HistogramData } from '../../common/index.ts';
import type { AdapterLoadRequest } from '../index.ts';

/** Distributions over sequences, and over tokens. */
export type EngineTimings = {
  /** Seconds from a request to the first step over it. */
  readonly queueSeconds: HistogramData;
  /** Seconds from a request to its first token. */
  readonly firstTokenSeconds: HistogramData;
  /** Seconds from one token to the next. */
  readonly betweenTokensSeconds: HistogramData;
  /** Tokens of a prompt. */
  readonly promptTokens: HistogramData;
  /** Tokens of a prompt that came from the prefix cache. */
  readonly cachedPromptTokens: HistogramData;
};

/** Numbers about one engine. */
export type EngineStats = {
  /** Number of running and of waiting sequences. */
  readonly running: number;
  readonly waiting: number;
  /** Cells of the KV cache: used by running sequences, held by the prefix cache, and the total. */
  readonly kvTokensInUse: number;
  readonly kvTokensCached: number;
  readonly kvTokens: number;
  /** Number of steps since the engine was created. */
  readonly steps: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  /** Draft tokens that had a row, and those of them that were accepted. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** Tokens sampled per second during the last seconds of work. */
  readonly tokensPerSecond: number;
  /** Distributions of waiting times and of prompt lengths. */
  readonly timings: EngineTimings;
};

/** Names of the statistics that are a single number. */
export type EngineCount = Exclude<keyof EngineStats, 'timings'>;

/** State of a model: waiting for memory, loading, ready, or to be unloaded after its last request. */
export type ResidentState = 'waiting' | 'loading' | 'ready' | 'leaving';

/** A model that is loaded, loading or waiting to be loaded. */
export type ResidentModel = {
  /** Its name in answers: the reference by which it was loaded. */
  readonly name: string;
  readonly path: string;
  /** See {@link ResidentState}. */
  readonly state: ResidentState;
  /** Loaded share, from 0 to 1. */
  readonly progress: number;
  /** Requests that wait for it or use it. */
  readonly requests: number;
  /** Estimated bytes of its memory. Null until the header of its file is read. */
  readonly memory: {
    readonly weights: number;
    readonly cache: number;
    readonly compute: number;
    /** Bytes of the adapters that are currently loaded. */
    readonly adapters: number;
    readonly total: number;
  } | null;
};

/** Properties of a model with local files, loaded or not. */
export type ModelCard = {
  readonly path: string;
  readonly format: 'gguf' | 'onnx';
  /** Bytes of its files. */
  readonly bytes: number;
  /** Time of the file's last change, in milliseconds since 1970. */
  readonly modifiedMs: number;
  /** Name of the architecture in llama.cpp, for example `qwen3`. Empty for ONNX models. */
  readonly architecture: string;
  /** Number of weights; null for ONNX models. */
  readonly parameters: number | null;
  /** Type of most weights, for example `Q4_K`; empty for ONNX models. */
  readonly weightType: string;
  /** Maximum number of tokens of prompt and answer together. */
  readonly contextSize: number;
  /** Jinja source. Empty if the model has no template. */
  readonly chatTemplate: string;
  /** `decision` is that of files that were trained for decisions, and then the only one, although every chat model decides. */
  readonly capabilities: readonly (
    | 'completion'
    | 'tools'
    | 'thinking'
    | 'vision'
    | 'embedding'
    | 'rerank'
    | 'decision'
  )[];
  /** Numbers and texts of a GGUF header, by key. */
  readonly metadata: Readonly<Record<string, string | number>>;
};

/** A named adapter. */
export type NamedAdapter = {
  readonly name: string;
  /** Its GGUF file or PEFT folder. */
  readonly path: string;
  /** Reference of its base model. Null means the default model. */
  readonly base: string | null;
};

/** Named adapters. */
export interface AdaptersResource {
  /**
   * Loads an adapter and gives it a name, which requests use as their `model`, or as the `model` of one of their `adapters`. It stays
   * loaded with its model.
   * @throws OnpolicyError `CONFLICT` if the name is taken, `MODEL_NOT_FOUND` if the file or the base model does not exist, `MODEL_INVALID`
   *   for an adapter of another model, `UNSUPPORTED` if it is not a plain LoRA
   */
  load(request: AdapterLoadRequest, options?: { readonly signal?: AbortSignal }): Promise<NamedAdapter>;
  /** Removes a name. The adapter is freed after the last request that uses it. Resolves with false for an unknown name. */
  unload(name: string): Promise<boolean>;
  /** Returns the adapters that are currently loaded. */
  list(): NamedAdapter[];
}
