/** A model file -> its facts, and where and how much memory it would take. Reads headers only. */

import {
  type Device,
  devices,
  type EngineReport,
  engineReport,
  loadAddon,
  onDisk,
} from '../engine/native/index.ts';
import { OnpolicyError } from '../errors.ts';
import { readHeaders, toShape } from '../models/formats/index.ts';
import { downloadFailed, findRemote, uriOf } from '../models/hub/index.ts';
import {
  chooseFitting,
  type Fit,
  type FormatOptions,
  fitOf,
  formatOf,
  openRemoteModel,
  type Placement,
  planLoad,
  resolveFile,
  totalBytes,
} from '../models/index.ts';
import { checkArguments, type InspectOptions, type ModelOptions, withDefaults } from '../protocol/index.ts';
import { trainingBytes } from '../rl/index.ts';
import { FORMATS } from './formats.ts';
import { checkOptions } from './options.ts';

/** The result of {@link inspectModel}. */
export type ModelInspection = {
  /** Path of the file. For a model that is still at the hub, its `hf:` URI. */
  readonly path: string;
  /** Architecture in llama.cpp's spelling, for example `qwen3`. */
  readonly architecture: string;
  /** Name given by its authors. Empty if the file has none. */
  readonly name: string;
  /** Context length that the model was trained for. */
  readonly contextLength: number;
  readonly layers: number;
  readonly embeddingSize: number;
  readonly vocabularySize: number;
  /** Jinja source of the chat template. Empty if the file has none; requests then need `chat_template`. */
  readonly chatTemplate: string;
  /** Bytes, estimated from sizes in the header and the options. */
  readonly memory: {
    readonly weights: number;
    readonly cache: number;
    readonly compute: number;
    /** Most bytes of prompt checkpoints, for models with recurrent state or sliding windows: the model option `checkpointBytes`. */
    readonly checkpoints: number;
    readonly total: number;
  };
  /** Compares the memory with that which this machine has free now. */
  readonly fit: Fit;
  readonly placement: Placement;
  /** True if an adapter of the model can be trained; `reason` says why not. */
  readonly training: {
    readonly isSupported: boolean;
    readonly reason: string | null;
    /**
     * Least bytes that training takes beside the weights, for an adapter of rank 8 of `trainingModules` on rows of `trainingTokens` tokens.
     * A `memoryBudget` of this size suffices. Null if the model cannot be trained or measured.
     */
    readonly bytes: number | null;
  };
  /** Processors and GPUs that the engine found on this machine. */
  readonly devices: readonly Device[];
  /** The engine's release, and what is off with it. */
  readonly engine: EngineReport | null;
};

/** Describes a model file: `inspectModel` of the package, loaded. */
export async function inspectModel(file: string, options: InspectOptions = {}): Promise<ModelInspection> {
  const checked = checkArguments('InspectOptions', options);
  const { cacheType, slidingWindow, trainingTokens: _, trainingModules, ...limits } = checked;
  const { trainingTokens } = withDefaults('InspectOptions', checked);
  const trained = { tokens: trainingTokens, modules: trainingModules };
  const own = { cacheType, slidingWindow };
  const serving = {
    ...checkOptions({ ...limits, model: { path: file, ...own } }),
    formats: FORMATS,
    notice: () => {},
  };
  const { name } = formatOf(file, serving.formats);
  if (name !== 'gguf')
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${file}: expected a GGUF file, got an ${name.toUpperCase()} model`,
    );
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

/** Returns the path of a model's file on this machine, or null for a URI that is not downloaded. */
async function localFile(
  file: string,
  { hub, formats }: FormatOptions,
  signal: AbortSignal,
): Promise<string | null> {
  if (!file.startsWith('hf:')) return file;
  try {
    return await resolveFile(file, { hub: { ...hub, offline: true }, formats, signal, field: 'file' });
  } catch (error) {
    if (hub.offline || (error as OnpolicyError).code !== 'NETWORK_FAILED') throw error;
    return null;
  }
}

/** Reads the facts from a header. `path`: path in the result. `file`: file with the headers. */
async function inspect(
  path: string,
  file: string,
  own: Omit<ModelOptions, 'path'>,
  serving: FormatOptions,
  trained: { readonly tokens: number; readonly modules: readonly string[] | undefined },
): Promise<ModelInspection> {
  const parts = await readHeaders(file);
  const [header] = parts;
  const shape = toShape(parts);
  const plan = await planLoad(file, { path: file, ...own }, serving, new AbortController().signal);
  const { need, placement } = plan;
  const { weights, cache, compute, checkpoints } = need;
  const reason = await loadAddon().whyNotTrainable(onDisk(file));
  const text = (key: string): string => header!.text(key) ?? '';
  return {
    path,
    architecture: header!.architecture,
    name: text('general.name'),
    contextLength: shape.contextLength,
    layers: shape.blockBytes.length,
    embeddingSize: shape.embeddingSize,
    vocabularySize: shape.vocabSize,
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
    engine: engineReport(),
  };
}

/** Measures the bytes that training takes. Returns null if they cannot be measured. Throws for an unknown module name. */
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
