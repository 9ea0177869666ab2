/** A model file -> what it is, and where and how much memory it would take. Reads headers only. */
import { isOnnxModel, readHeaders } from './backends/index.ts';
import { OnpolicyError } from './errors.ts';
import { type Placement, planLoad } from './models/index.ts';
import { type Device, devices } from './native/index.ts';
import { checkArguments, type InspectOptions } from './protocol/index.ts';
import { checkOptions } from './runtime-options.ts';

/** What {@link inspectModel} finds. */
export type ModelInspection = {
  readonly path: string;
  /** As llama.cpp names it, for example `qwen3`. */
  readonly architecture: string;
  /** As its authors named it; empty: the file does not say. */
  readonly name: string;
  /** Tokens that it was trained for. */
  readonly contextLength: number;
  readonly layers: number;
  readonly embeddingSize: number;
  readonly vocabularySize: number;
  /** Jinja source; empty: it has none, so that requests need `chat_template`. */
  readonly chatTemplate: string;
  /** Bytes, as estimated from its sizes and the options. */
  readonly memory: {
    readonly weights: number;
    readonly cache: number;
    readonly compute: number;
    readonly total: number;
  };
  readonly placement: Placement;
  /** Processors and GPUs that the engine found. */
  readonly devices: readonly Device[];
};

/**
 * What a GGUF file is, and what a runtime with these options would take for it.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, `MODEL_NOT_FOUND`, `MODEL_INVALID`, `UNSUPPORTED` for an ONNX model
 */
export async function inspectModel(file: string, options: InspectOptions = {}): Promise<ModelInspection> {
  const { cacheType, slidingWindow, ...limits } = checkArguments('InspectOptions', options);
  const model = { path: file, cacheType, slidingWindow };
  const serving = { ...checkOptions({ ...limits, model }), say: () => {} };
  if (isOnnxModel(file))
    throw new OnpolicyError('UNSUPPORTED', `${file}: expected a GGUF file, got an ONNX model`);
  const [header] = await readHeaders({ path: file, gpu: serving.gpu });
  const { shape, need, placement } = await planLoad(file, model, serving, new AbortController().signal);
  const { weights, cache, compute } = need;
  const text = (key: string): string => String(header!.metadata[key] ?? '');
  return {
    path: file,
    architecture: text('general.architecture'),
    name: text('general.name'),
    contextLength: shape!.contextLength,
    layers: shape!.blockBytes.length,
    embeddingSize: shape!.embeddingSize,
    vocabularySize: shape!.vocabSize,
    chatTemplate: text('tokenizer.chat_template'),
    memory: { weights, cache, compute, total: weights + cache + compute },
    placement,
    devices: devices(),
  };
}
