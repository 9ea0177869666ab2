/** An `hf:` URI -> the local file of a GGUF model, downloaded if missing; the first file of a split model. */
import fs from 'node:fs';
import path from 'node:path';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type { HubOptions } from '../../protocol/index.ts';
import { bytesOf, type Candidate, candidatesOf, ofType, partsOf, typesOf } from './choose.ts';
import { downloadFile, networkReason, type Progress } from './download-file.ts';
import { type ListedFile, listFiles, localFiles } from './list-files.ts';
import { writeNote } from './notes.ts';
import { fileAddress, type HubReference, parseReference, repositoryFolder, uriOf } from './reference.ts';

/** Options for finding a model. */
export type FindOptions = {
  readonly hub: HubOptions;
  readonly signal: AbortSignal;
  /** Field that errors name. */
  readonly field: string;
  /** Chooses one of several models for the type `auto`. Called only if models have to be downloaded. */
  readonly choose: (
    reference: HubReference,
    files: readonly ListedFile[],
    candidates: readonly Candidate[],
    signal: AbortSignal,
  ) => Promise<Candidate>;
};

/** A model at the hub. `files` are those of its repository; null if they were not listed. */
export type FoundModel = {
  readonly reference: HubReference;
  readonly model: Candidate;
  readonly files: readonly ListedFile[] | null;
};

/** Returns the file of a model, downloaded if missing. Fails with `MODEL_NOT_FOUND`, `NETWORK_FAILED`, `STORE_FAILED` or `ABORTED`. */
export async function fetchGguf(
  uri: string,
  options: FindOptions & { readonly onProgress: ((progress: Progress) => void) | null },
): Promise<string> {
  const { hub, signal, field, onProgress } = options;
  const reference = parseReference(uri, field);
  const local = localModel(reference, hub);
  if (local !== null) return local;
  try {
    if (hub.offline) throw new Error('nothing may be downloaded');
    const { model } = await findRemote(uri, options);
    let before = 0;
    for (const file of model.files) {
      await fetchPart(reference, file, options, (progress) =>
        onProgress?.(model.files.length === 1 ? progress : withParts(progress, before, model.bytes)),
      );
      before += file.size ?? 0;
    }
    return placeOf(reference, model.files[0]!.path, hub);
  } catch (cause) {
    throw signal.aborted ? aborted(uri, cause) : downloadFailed(uri, field, cause);
  }
}

/** Finds the model of a URI at the hub. */
export async function findRemote(
  uri: string,
  { hub, signal, field, choose }: FindOptions,
): Promise<FoundModel> {
  const reference = parseReference(uri, field);
  const { file, type } = reference;
  if (file !== null && partsOf(file).length === 1)
    return {
      reference,
      files: null,
      model: { files: [{ path: file, size: null, hash: null }], bytes: null },
    };
  const files = await listFiles(reference, hub, signal);
  if (files === null)
    throw errorAt(field, 'MODEL_NOT_FOUND', `the hub has no repository ${reference.repository}`);
  if (file !== null) {
    const known = new Map(files.map((one) => [one.path, one]));
    const parts = partsOf(file).map((path) => known.get(path) ?? { path, size: null, hash: null });
    return { reference, files, model: { files: parts, bytes: bytesOf(parts) } };
  }
  const candidates = candidatesOf(files);
  const model =
    type !== 'auto'
      ? ofType(candidates, type)
      : candidates.length > 1
        ? await choose(reference, files, candidates, signal)
        : candidates[0];
  if (model) return { reference, files, model };
  const types = typesOf(candidates);
  const has = types === '' ? 'no model in a GGUF file' : types;
  const wanted = type === 'auto' ? 'a model in a GGUF file' : `a file of type ${type}`;
  throw errorAt(field, 'MODEL_NOT_FOUND', `${uri}: expected ${wanted}, the repository has ${has}`);
}

/** Returns the complete local model, for `auto` the largest. Returns null if there is none. */
function localModel(reference: HubReference, hub: HubOptions): string | null {
  const { file, type } = reference;
  if (file !== null) {
    const isHere = partsOf(file).every((part) => fs.existsSync(placeOf(reference, part, hub)));
    return isHere ? placeOf(reference, file, hub) : null;
  }
  const candidates = candidatesOf(localFiles(reference, hub));
  const found = type === 'auto' ? candidates[0] : ofType(candidates, type);
  return found ? placeOf(reference, found.files[0]!.path, hub) : null;
}

async function fetchPart(
  reference: HubReference,
  file: ListedFile,
  { hub, signal, field }: FindOptions,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const target = placeOf(reference, file.path, hub);
  if (fs.existsSync(target)) return;
  const url = fileAddress(reference, file.path, hub);
  const facts = await downloadFile(
    { url, token: hub.token ?? null, signal, listed: file, onProgress },
    target,
  );
  if (facts === null)
    throw errorAt(field, 'MODEL_NOT_FOUND', `the hub has no file ${uriOf(reference, file.path)}`);
  await writeNote(target, 'hub', { size: facts.size, hash: facts.hash });
}

function placeOf(reference: HubReference, file: string, hub: HubOptions): string {
  return path.join(repositoryFolder(reference, hub), ...file.split('/'));
}

/** Turns the progress of one file into that of all files. */
function withParts(progress: Progress, before: number, totalBytes: number | null): Progress {
  const bytes = before + progress.bytes;
  const { bytesPerSecond } = progress;
  const left = totalBytes === null || bytesPerSecond <= 0 ? null : (totalBytes - bytes) / bytesPerSecond;
  return { bytes, totalBytes, bytesPerSecond, secondsLeft: left };
}

export function aborted(uri: string, cause: unknown): OnpolicyError {
  return new OnpolicyError('ABORTED', `downloading ${uri} was aborted`, { cause });
}

/** Wraps an error of the hub. Errors of this library are returned unchanged. */
export function downloadFailed(uri: string, field: string, cause: unknown): OnpolicyError {
  if (cause instanceof OnpolicyError) return cause;
  const reason = `${uri} is not in the local folder and could not be downloaded: ${networkReason(cause)}`;
  return errorAt(field, 'NETWORK_FAILED', reason, cause);
}
