/**
 * A file that is no GGUF file -> its model, through the contract of a model format. The runtime passes the formats in, so that the core
 * imports none of them.
 */
import type { NativeEmbedder } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { Gpu, HubOptions } from '../protocol/index.ts';
import type { LoadedModel, Pooling } from './formats/index.ts';
import type { Progress } from './hub/index.ts';

/** Pooling of states into the vector of a text. */
export type VectorPooling = Exclude<Pooling, 'rank'>;

/** Options for loading a model of a format. */
export type FormatLoad = {
  /** Path of the file or folder. */
  readonly path: string;
  readonly gpu: Gpu;
  /** CPU threads. Null for the format's default. */
  readonly threads: number | null;
  readonly signal: AbortSignal;
};

/** A format of model files. All methods but `owns` and `fetch` throw `MODEL_INVALID` or `UNSUPPORTED` for files that they cannot read. */
export type ModelFormat = {
  /** Name of the format in model cards. */
  readonly name: 'onnx';
  /** Returns true if a path is a model of this format. */
  owns(file: string): boolean;
  /** Downloads the model of an `hf:` reference and returns its path. Returns null if the reference is not of this format. */
  fetch(
    reference: string,
    hub: HubOptions,
    signal: AbortSignal,
    onProgress: (progress: Progress) => void,
  ): Promise<string> | null;
  /** Reads the facts of a model that answers or embeds. */
  describe(file: string): {
    /** Bytes of the model's files. */
    readonly bytes: number;
    readonly contextLength: number;
    readonly chatTemplate: string;
  };
  /** Returns the pooling (`given` has priority) and the longest text. Returns null if the model embeds nothing. */
  describeVectors(
    file: string,
    given: VectorPooling | undefined,
  ): { readonly pooling: VectorPooling; readonly contextLength: number } | null;
  load(options: FormatLoad): Promise<LoadedModel>;
  loadVectors(
    options: FormatLoad & { readonly pooling: VectorPooling },
  ): Promise<{ readonly tokenizer: Tokenizer; readonly embedder: NativeEmbedder }>;
};

/** Returns the format that owns a file. Returns null for a GGUF file. */
export function formatOf(file: string, formats: readonly ModelFormat[]): ModelFormat | null {
  return formats.find((format) => format.owns(file)) ?? null;
}
