/** A model with the adapters of its name and of a request -> one file or folder on the disk, complete or absent. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { atField, ifMissing, LeaseScope, replaceWith, storeFailed } from '../common/index.ts';
import { defaultThreads, type HeaderEntries, loadAddon, openLibraries } from '../engine/native/index.ts';
import { errorAt, fromNative } from '../errors.ts';
import {
  checkCallOptions,
  checkModelExport,
  fault,
  type ModelExportRequest,
  throwFaults,
} from '../protocol/index.ts';
import { AdapterFiles, type OpenAdapter } from './adapter-files.ts';
import { writePeftFolder } from './export-peft.ts';
import { PLAIN_TYPES, writeSafetensorsFolder, writeSafetensorsModel } from './export-safetensors.ts';
import { isF32, readModel } from './formats/index.ts';
import { type CountedAdapter, readGgufAdapter } from './lora/index.ts';
import { type FoundPart, findParts, type References } from './model-lease.ts';

/** The result of an export. */
export type ModelExport = {
  /** The file, or the folder of the format `peft`. */
  readonly path: string;
  readonly format: NonNullable<ModelExportRequest['format']>;
  /** Size of the file, or of all files in the folder. */
  readonly bytes: number;
  /** Number of merged adapters. */
  readonly adapters: number;
};

/**
 * Writes a model with the adapters of its name and of the request. After a failure the target is unchanged.
 * @throws OnpolicyError `CONFLICT` if the target exists and `overwrite` is not set, `MODEL_NOT_FOUND`, `MODEL_INVALID` for an adapter of
 * another model, `UNSUPPORTED` for models that are no GGUF file, `STORE_FAILED` if the disk is full
 */
export type ExportModel = (
  request: ModelExportRequest,
  options?: { readonly signal?: AbortSignal },
) => Promise<ModelExport>;

type ExportType = NonNullable<ModelExportRequest['type']>;

/** Types that a GGUF file can be written in -> llama.cpp's numbers of these mixes of types. */
const EXPORT_TYPES: Readonly<Record<ExportType, number>> = {
  f32: 0,
  bf16: 32,
  f16: 1,
  q8_0: 7,
  q6_k: 18,
  q5_k_m: 17,
  q5_k_s: 16,
  q5_1: 9,
  q5_0: 8,
  q4_k_m: 15,
  q4_k_s: 14,
  q4_1: 3,
  q4_0: 2,
  iq4_nl: 25,
  iq4_xs: 30,
  q3_k_l: 13,
  q3_k_m: 12,
  q3_k_s: 11,
  q2_k: 10,
};

/** Returns the entries by which the file of a model is read as a decision file. */
export type DecisionEntries = (reference: string, signal: AbortSignal | undefined) => Promise<HeaderEntries>;

const NO_ENTRIES: HeaderEntries = { textKeys: [], texts: [], numberKeys: [], numbers: new Float32Array() };

type Plan = {
  readonly model: string;
  readonly files: readonly string[]; // GGUF files of the parts
  readonly scales: readonly number[]; // of the parts
  readonly type: ExportType | null;
  readonly entries: HeaderEntries;
  readonly isFolder: boolean; // a folder of safetensors weights and their configuration
  readonly signal: AbortSignal | undefined;
};

/** `runtime.models.export`. `requireOpen` throws when the runtime is closed. */
export function modelExporter(
  references: References,
  requireOpen: () => void,
  entriesOf: DecisionEntries,
): ExportModel {
  return async (request, options = {}) => {
    requireOpen();
    checkCallOptions(options);
    const { signal } = options;
    const { model: reference, adapters, to, format, type, overwrite, decisions } = checkModelExport(request);
    const target = path.resolve(to);
    await requireTarget(target, overwrite);
    using scope = new LeaseScope();
    const found = await findParts(references, reference, adapters, scope);
    const base = found.baseModel ?? references.models.names.fallbackName;
    const parts = found.parts.filter(({ scale }) => scale !== 0);
    const model = await atField('model', () => references.models.memory.download(base, signal));
    if (!model.endsWith('.gguf') && (await fs.stat(model)).isDirectory())
      throw errorAt('model', 'UNSUPPORTED', `${model} is not a GGUF file; only GGUF models can be exported`);
    if (format === 'peft' && parts.length === 0)
      throwFaults([fault(['format'], 'conflict', 'gguf for a model without adapters', format)]);
    const entries = decisions ? await entriesOf(reference, signal) : NO_ENTRIES;
    const temporary = `${target}.${randomUUID()}.new`;
    try {
      await openLibraries('auto');
      await using open = await openParts(model, parts);
      const scales = parts.map(({ scale }) => scale);
      const isFolder = !target.endsWith('.safetensors');
      const plan = { model, files: open.files, scales, type, entries, isFolder, signal };
      await WRITERS[format](plan, temporary);
      signal?.throwIfAborted();
      const bytes = await bytesOf(temporary);
      await replaceWith(temporary, target);
      return { path: target, format, bytes, adapters: parts.length };
    } catch (cause) {
      await fs.rm(temporary, { recursive: true, force: true });
      throw signal?.aborted
        ? fromNative(signal.reason)
        : storeFailed(`cannot write ${target}`, fromNative(cause));
    }
  };
}

async function requireTarget(target: string, isReplacing: boolean): Promise<void> {
  const stat = (file: string) => fs.stat(file).catch(ifMissing(null));
  if (!(await stat(path.dirname(target)))?.isDirectory())
    throwFaults([fault(['to'], 'value', 'a path in a folder that exists', target)]);
  if (!isReplacing && (await stat(target)))
    throw errorAt('to', 'CONFLICT', `${target} exists already; overwrite replaces it`);
}

/** Returns the GGUF files of the adapters, checked against the model. */
async function openParts(
  model: string,
  parts: readonly FoundPart[],
): Promise<AsyncDisposable & { files: string[] }> {
  const adapterFiles = new AdapterFiles(model);
  const opened: OpenAdapter[] = [];
  const dispose = async (): Promise<void> => {
    for (const adapter of opened.splice(0)) await adapter[Symbol.asyncDispose]();
  };
  try {
    for (const { file, field } of parts) opened.push(await atField(field, () => adapterFiles.open(file)));
  } catch (error) {
    await dispose();
    throw error;
  }
  return { files: opened.map(({ file }) => file), [Symbol.asyncDispose]: dispose };
}

async function writeGguf({ model, files, scales, type, entries, signal }: Plan, to: string): Promise<void> {
  const addon = loadAddon();
  const merge = (types: 'same' | 'wide' | 'widest', file: string): Promise<void> =>
    addon.mergeModel({
      model,
      files,
      scales: Float32Array.from(scales),
      types,
      ...entries,
      threads: defaultThreads(),
      to: file,
    });
  if (type === null) return await merge('same', to);
  const wide = type === 'f32' || type === 'bf16' ? 'widest' : 'wide'; // 16 bits in between could lose precision
  if (type === 'f32') return await merge(wide, to);
  const merged = `${to}.merged`;
  try {
    await merge(wide, merged);
    signal?.throwIfAborted();
    await addon.quantizeModel({
      model: merged,
      fileType: EXPORT_TYPES[type],
      threads: defaultThreads(),
      to,
    });
  } finally {
    await fs.rm(merged, { force: true });
  }
}

async function writePeft({ model, files, scales }: Plan, folder: string): Promise<void> {
  const [header] = await readModel(model);
  const addon = loadAddon();
  await fs.mkdir(folder);
  const wide = path.join(folder, 'adapter.gguf'); // each adapter in 32-bit floats, merged one after the other
  const adapters: CountedAdapter[] = [];
  for (const [i, file] of files.entries()) {
    await addon.mergeModel({
      model: file,
      files: [],
      scales: new Float32Array(),
      types: 'widest',
      ...NO_ENTRIES,
      threads: 1,
      to: wide,
    });
    adapters.push({ ...(await readGgufAdapter(wide)), gain: scales[i]! });
  }
  await fs.rm(wide);
  await writePeftFolder(folder, adapters, header!);
}

async function writePlain({ model, files, scales, type: given, isFolder }: Plan, to: string): Promise<void> {
  const [header, ...others] = await readModel(model);
  if (others.length > 0) throw errorAt('model', 'UNSUPPORTED', 'a model in several files is not exported');
  const type = PLAIN_TYPES.find((name) => name === given) ?? (isF32(header!) ? 'f32' : 'bf16');
  const source = { model, header: header!, files, scales: Float32Array.from(scales) };
  const write = isFolder ? writeSafetensorsFolder : writeSafetensorsModel;
  await write({ ...source, type, threads: defaultThreads() }, to);
}

/** Writers by format. Each writes all weights or fails. */
const WRITERS: Readonly<Record<ModelExport['format'], (plan: Plan, to: string) => Promise<void>>> = {
  gguf: writeGguf,
  peft: writePeft,
  safetensors: writePlain,
};

async function bytesOf(target: string): Promise<number> {
  const stat = await fs.stat(target);
  if (!stat.isDirectory()) return stat.size;
  const names = await fs.readdir(target);
  const sizes = await Promise.all(names.map(async (name) => (await fs.stat(path.join(target, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
