/** A model file -> what it is, and where and how much memory it would take. Reads headers only. */
import { isOnnxModel, readHeaders } from './backends/index.ts';
import { OnpolicyError } from './errors.ts';
import { type Placement, planLoad, totalBytes } from './models/index.ts';
import { type Device, devices, loadAddon, onDisk } from './native/index.ts';
import { checkArguments, type InspectOptions } from './protocol/index.ts';
import { checkOptions } from './runtime-options.ts';

/** The result of {@link inspectModel}. */
export type ModelInspection = {
  readonly path: string;
  /** As llama.cpp names it, for example `qwen3`. */
  readonly architecture: string;
  /** The name given by its authors; empty if the file has none. */
  readonly name: string;
  /** Context length that it was trained for. */
  readonly contextLength: number;
  readonly layers: number;
  readonly embeddingSize: number;
  readonly vocabularySize: number;
  /** Jinja source; empty if it has none, so requests need `chat_template`. */
  readonly chatTemplate: string;
  /** Bytes, estimated from its sizes and the options. */
  readonly memory: {
    readonly weights: number;
    readonly cache: number;
    readonly compute: number;
    /** What checkpoints of models with recurrent state or sliding windows may take: the model option `checkpointBytes`. */
    readonly checkpoints: number;
    readonly total: number;
  };
  readonly placement: Placement;
  /** Whether an adapter of it can be trained, and if not, why. */
  readonly training: { readonly isSupported: boolean; readonly reason: string | null };
  /** Processors and GPUs that the engine found. */
  readonly devices: readonly Device[];
};

/**
 * Describes a GGUF file, and the memory that a runtime with these options would need for it.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, `MODEL_NOT_FOUND`, `MODEL_INVALID`, `UNSUPPORTED` for an ONNX model
 */
export async function inspectModel(file: string, options: InspectOptions = {}): Promise<ModelInspection> {
  const { cacheType, slidingWindow, ...limits } = checkArguments('InspectOptions', options);
  const model = { path: file, cacheType, slidingWindow };
  const serving = { ...checkOptions({ ...limits, model }), notice: () => {} };
  if (isOnnxModel(file))
    throw new OnpolicyError('UNSUPPORTED', `${file}: expected a GGUF file, got an ONNX model`);
  const [header] = await readHeaders(file);
  const { shape, need, placement } = await planLoad(file, model, serving, new AbortController().signal);
  const { weights, cache, compute, checkpoints } = need;
  const reason = await loadAddon().whyNotTrainable(onDisk(file));
  const text = (key: string): string => header!.text(key) ?? '';
  return {
    path: file,
    architecture: header!.architecture,
    name: text('general.name'),
    contextLength: shape!.contextLength,
    layers: shape!.blockBytes.length,
    embeddingSize: shape!.embeddingSize,
    vocabularySize: shape!.vocabSize,
    chatTemplate: text('tokenizer.chat_template'),
    memory: { weights, cache, compute, checkpoints, total: totalBytes(need) },
    placement,
    training: { isSupported: reason === '', reason: reason || null },
    devices: devices(),
  };
}
