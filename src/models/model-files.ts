/** A reference -> a local file, downloaded if missing; a model's file -> its projector. */
import fs from 'node:fs';
import path from 'node:path';
import { ifMissing } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import type { ModelOptions, OnProgress } from '../protocol/index.ts';
import type { FindOptions, Progress } from './hub/index.ts';
import { projectorInRepository } from './hub-projector.ts';
import { missingModel } from './missing-model.ts';
import { type FormatOptions, formatOf } from './model-format.ts';

/**
 * Returns the file of a model's projector, downloaded if missing, or null if it has none. If the options name none, it looks in the
 * repository of a model named by a URI, and in the folder of other models. Fails with `MODEL_NOT_FOUND`, `UNSUPPORTED`, `NETWORK_FAILED` or
 * `ABORTED`.
 */
export async function findProjector(
  file: string,
  { path: reference, mmproj }: Pick<ModelOptions, 'path' | 'mmproj'>,
  { hub, formats, onProgress, log }: Pick<FormatOptions, 'hub' | 'formats' | 'onProgress' | 'log'>,
  signal: AbortSignal,
): Promise<string | null> {
  if (!formatOf(file, formats).hasProjectors) {
    if (mmproj == null) return null;
    throw errorAt('model.mmproj', 'UNSUPPORTED', 'expected a GGUF model');
  }
  const look = async (): Promise<string | null> => {
    if (!reference.startsWith('hf:')) return projectorBeside(file);
    return await projectorInRepository(reference, file, { hub, signal, warn: (line) => log?.('warn', line) });
  };
  const found = mmproj === undefined ? await look() : mmproj;
  if (found === null) return null;
  return await resolveFile(found, { hub, formats, onProgress, signal, field: 'model.mmproj' });
}

/** Returns the file in the model's folder with a projector's name. Returns null if there is none or several. */
function projectorBeside(model: string): string | null {
  const folder = path.dirname(model);
  const found = fs.readdirSync(folder).filter((name) => /mmproj.*\.gguf$/i.test(name));
  return found.length === 1 && found[0] !== path.basename(model) ? path.join(folder, found[0]!) : null;
}

/** Resolves links. Returns null if the file does not exist. */
function realPath(file: string): string | null {
  try {
    return fs.realpathSync(file);
  } catch (error) {
    return ifMissing(null)(error);
  }
}

export type ResolveOptions = Pick<FormatOptions, 'hub' | 'formats'> & {
  readonly signal: AbortSignal;
  readonly onProgress?: OnProgress | null;
  /** Field that errors name. */
  readonly field?: string;
  /** Valid references in addition to a path and a URI, for errors. */
  readonly names?: readonly string[];
  /** Chooses the model of a repository if the URI names none. Default: the largest. */
  readonly choose?: FindOptions['choose'];
};

/** Returns a local path unchanged. Downloads an `hf:` URI with the first format that its repository belongs to. */
export async function resolveFile(
  reference: string,
  { hub, formats, signal, onProgress, field = 'model', names = [], choose = takeLargest }: ResolveOptions,
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
  for (const format of formats) {
    const fetched = format.fetch(reference, { hub, signal, field, choose, onProgress: report });
    if (fetched) return await fetched;
  }
  throw missingModel(field, reference, names);
}

const takeLargest: FindOptions['choose'] = async (_reference, _files, [largest]) => largest!;
