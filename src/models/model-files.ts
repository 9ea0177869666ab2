/** A reference -> a local file, downloaded where needed; a model's file -> that of its projector. */
import fs from 'node:fs';
import path from 'node:path';
import { fetchModel, isOnnxModel, parseHubReference } from '../backends/index.ts';
import { ifMissing } from '../common/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import type { HubOptions, ModelOptions, OnProgress } from '../protocol/index.ts';
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
  return found === null ? null : await resolveFile(found, hub, onProgress, signal, { field: 'model.mmproj' });
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

/** Undefined would make the downloader look into the environment, which its types do not say. */
const NO_TOKEN = null as unknown as string;

/** A local path as it is; an `hf:` URI through the cache of node-llama-cpp, or of transformers.js for ONNX repositories. */
export async function resolveFile(
  reference: string,
  hub: HubOptions,
  onProgress: OnProgress | null,
  signal: AbortSignal,
  { field = 'model', names = [] }: { field?: string; names?: readonly string[] } = {},
): Promise<string> {
  if (!reference.startsWith('hf:')) {
    const file = realPath(path.resolve(reference));
    if (file === null) throw missingModel(field, reference, names);
    return file;
  }
  const onnx = parseHubReference(reference);
  if (onnx)
    return await fetchModel(onnx, hub, signal, (fraction) => onProgress?.(reference, fraction, 'download'));
  const { resolveModelFile } = await import('./download.ts');
  try {
    return await resolveModelFile(reference, {
      cli: false,
      signal,
      deleteTempFileOnCancel: false, // the next download goes on with it
      tokens: { huggingFace: hub.token ?? NO_TOKEN },
      ...(hub.folder === undefined ? {} : { directory: path.resolve(hub.folder) }),
      ...(hub.endpoint === undefined ? {} : { endpoints: { huggingFace: hub.endpoint } }),
      ...(hub.offline ? { download: false } : {}),
      ...(onProgress
        ? {
            onProgress: ({ totalSize, downloadedSize }) =>
              onProgress(reference, downloadedSize / Math.max(totalSize, 1), 'download'),
          }
        : {}),
    });
  } catch (cause) {
    if (signal?.aborted)
      throw new OnpolicyError('ABORTED', `downloading ${reference} was aborted`, { cause });
    throw errorAt(
      field,
      'NETWORK_FAILED',
      `${reference} is not in the local folder and could not be downloaded: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    );
  }
}
