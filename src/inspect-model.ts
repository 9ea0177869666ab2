/** A model file -> what it is, and where and how much memory it would take. Reads headers only. */
import { isOnnxModel, readHeaders } from './backends/index.ts';
import { OnpolicyError } from './errors.ts';
import { downloadFailed, findRemote, uriOf } from './hub/index.ts';
import {
  chooseFitting,
  type Fit,
  fitOf,
  openRemoteModel,
  type Placement,
  planLoad,
  resolveFile,
  type ServingOptions,
  totalBytes,
} from './models/index.ts';
import { type Device, devices, loadAddon, onDisk } from './native/index.ts';
import { checkArguments, type InspectOptions, type ModelOptions, withDefaults } from './protocol/index.ts';
import { trainingBytes } from './rl/index.ts';
import { checkOptions } from './runtime-options.ts';

/** The result of {@link inspectModel}. */
export type ModelInspection = {
  /** The file; of a model at the hub its `hf:` URI. */
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
  /** Whether this machine has that memory now. */
  readonly fit: Fit;
  readonly placement: Placement;
  /** Whether an adapter of it can be trained, and if not, why. */
  readonly training: {
    readonly isSupported: boolean;
    readonly reason: string | null;
    /**
     * Bytes that an adapter of rank 8 of `trainingModules` takes beside the weights while it is trained on rows of `trainingTokens`
     * tokens, at least: a `memoryBudget` of as much suffices. Null: it cannot be trained, or measured.
     */
    readonly bytes: number | null;
  };
  /** Processors and GPUs that the engine found. */
  readonly devices: readonly Device[];
};

/**
 * Describes a GGUF file, and the memory that a runtime with these options would need for it. Of an `hf:` URI that was not downloaded only
 * the headers are read, over the network.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, `MODEL_NOT_FOUND`, `MODEL_INVALID`, `NETWORK_FAILED`, `UNSUPPORTED` for an ONNX
 * model
 */
export async function inspectModel(file: string, options: InspectOptions = {}): Promise<ModelInspection> {
  const checked = checkArguments('InspectOptions', options);
  const { cacheType, slidingWindow, trainingTokens: _, trainingModules, ...limits } = checked;
  const { trainingTokens } = withDefaults('InspectOptions', checked);
  const trained = { tokens: trainingTokens, modules: trainingModules };
  const own = { cacheType, slidingWindow };
  const serving = { ...checkOptions({ ...limits, model: { path: file, ...own } }), notice: () => {} };
  if (isOnnxModel(file))
    throw new OnpolicyError('UNSUPPORTED', `${file}: expected a GGUF file, got an ONNX model`);
  const { signal } = new AbortController();
  const local = await localFile(file, serving, signal);
  if (local !== null) return await inspect(file, local, own, serving, trained);
  try {
    const choose = chooseFitting(serving);
    const found = await findRemote(file, { hub: serving.hub, signal, field: 'file', choose });
    await using remote = await openRemoteModel(found, serving.hub, signal);
    const name = uriOf(found.reference, found.model.files[0]!.path);
    return await inspect(name, remote.file, own, serving, trained);
  } catch (cause) {
    throw downloadFailed(file, 'file', cause);
  }
}

/** Null: a URI that was not downloaded. */
async function localFile(file: string, { hub }: ServingOptions, signal: AbortSignal): Promise<string | null> {
  if (!file.startsWith('hf:')) return file;
  try {
    return await resolveFile(file, { hub: { ...hub, offline: true }, signal, field: 'file' });
  } catch (error) {
    if (hub.offline || (error as OnpolicyError).code !== 'NETWORK_FAILED') throw error;
    return null;
  }
}

/** `path`: what it is called in the result. `file`: where its headers are. */
async function inspect(
  path: string,
  file: string,
  own: Omit<ModelOptions, 'path'>,
  serving: ServingOptions,
  trained: { readonly tokens: number; readonly modules: readonly string[] | undefined },
): Promise<ModelInspection> {
  const [header] = await readHeaders(file);
  const plan = await planLoad(file, { path: file, ...own }, serving, new AbortController().signal);
  const { shape, need, placement } = plan;
  const { weights, cache, compute, checkpoints } = need;
  const reason = await loadAddon().whyNotTrainable(onDisk(file));
  const text = (key: string): string => header!.text(key) ?? '';
  return {
    path,
    architecture: header!.architecture,
    name: text('general.name'),
    contextLength: shape!.contextLength,
    layers: shape!.blockBytes.length,
    embeddingSize: shape!.embeddingSize,
    vocabularySize: shape!.vocabSize,
    chatTemplate: text('tokenizer.chat_template'),
    memory: { weights, cache, compute, checkpoints, total: totalBytes(need) },
    fit: fitOf(need, placement),
    placement,
    training: {
      isSupported: reason === '',
      reason: reason || null,
      bytes: reason === '' ? await bytesOfTraining(file, trained) : null,
    },
    devices: devices(),
  };
}

/** Null: they cannot be measured. A wrong name of a module is an error. */
async function bytesOfTraining(
  file: string,
  { tokens, modules }: { readonly tokens: number; readonly modules: readonly string[] | undefined },
): Promise<number | null> {
  try {
    return await trainingBytes(file, tokens, modules);
  } catch (error) {
    if (modules) throw error;
    return null;
  }
}
