/** A reference -> a local file, downloaded where needed; a model's file -> that of its projector. */
import fs from 'node:fs';
import path from 'node:path';
import { fetchModel, isOnnxModel, parseHubReference } from '../backends/index.ts';
import { ifMissing } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import { type FindOptions, fetchGguf, type Progress } from '../hub/index.ts';
import type { ModelOptions, OnProgress } from '../protocol/index.ts';
import { projectorInRepository } from './hub-projector.ts';
import { missingModel } from './missing-model.ts';
import type { ServingOptions } from './serving-options.ts';

/**
 * The file of a model's projector, downloaded where needed; null if it has none. What the options do not name is looked for in the
 * repository of a model named by a URI, in the folder of another. Fails with `MODEL_NOT_FOUND`, `UNSUPPORTED`, `NETWORK_FAILED` or `ABORTED`.
 */
export async function findProjector(
  file: string,
  { path: reference, mmproj }: Pick<ModelOptions, 'path' | 'mmproj'>,
  { hub, onProgress, log }: Pick<ServingOptions, 'hub' | 'onProgress' | 'log'>,
  signal: AbortSignal,
): Promise<string | null> {
  if (isOnnxModel(file)) {
    if (mmproj == null) return null;
    throw errorAt('model.mmproj', 'UNSUPPORTED', 'expected a GGUF model');
  }
  const look = async (): Promise<string | null> => {
    if (!reference.startsWith('hf:')) return projectorBeside(file);
    return await projectorInRepository(reference, file, { hub, signal, warn: (line) => log?.('warn', line) });
  };
  const found = mmproj === undefined ? await look() : mmproj;
  return found === null ? null : await resolveFile(found, { hub, onProgress, signal, field: 'model.mmproj' });
}

/** A file in the model's folder whose name says that it is its projector; null if none or several are there. */
function projectorBeside(model: string): string | null {
  const folder = path.dirname(model);
  const found = fs.readdirSync(folder).filter((name) => /mmproj.*\.gguf$/i.test(name));
  return found.length === 1 && found[0] !== path.basename(model) ? path.join(folder, found[0]!) : null;
}

/** Without links; null: there is no such file. */
function realPath(file: string): string | null {
  try {
    return fs.realpathSync(file);
  } catch (error) {
    return ifMissing(null)(error);
  }
}

export type ResolveOptions = Pick<ServingOptions, 'hub'> & {
  readonly signal: AbortSignal;
  readonly onProgress?: OnProgress | null;
  /** What an error names. */
  readonly field?: string;
  /** What a reference may be beside a path and a URI, for an error. */
  readonly names?: readonly string[];
  /** Which model of a repository is taken where the URI does not say. Default: the largest. */
  readonly choose?: FindOptions['choose'];
};

/** A local path as it is; an `hf:` URI through the folder of downloads, or the cache of transformers.js for ONNX repositories. */
export async function resolveFile(
  reference: string,
  { hub, signal, onProgress, field = 'model', names = [], choose = takeLargest }: ResolveOptions,
): Promise<string> {
  if (!reference.startsWith('hf:')) {
    const file = realPath(path.resolve(reference));
    if (file === null) throw missingModel(field, reference, names);
    return file;
  }
  const report = ({ bytes, totalBytes, ...rate }: Progress): void => {
    const fraction = totalBytes === null ? 0 : bytes / Math.max(totalBytes, 1);
    onProgress?.(reference, Math.min(1, fraction), 'download', { bytes, totalBytes, ...rate });
  };
  const onnx = parseHubReference(reference);
  if (onnx) return await fetchModel(onnx, hub, signal, report);
  return await fetchGguf(reference, { hub, signal, field, choose, onProgress: report });
}

const takeLargest: FindOptions['choose'] = async (_reference, _files, [largest]) => largest!;
