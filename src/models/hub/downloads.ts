/** The folder of downloads -> a list of them; deletion and checks of one. */
import fs from 'node:fs';
import path from 'node:path';
import { storeFailed } from '../../common/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type { HubOptions } from '../../protocol/index.ts';
import { hashOf } from './download-file.ts';
import { notesOf, readNote } from './notes.ts';
import { isBeingWritten } from './part-files.ts';
import { downloadFolder, uriOf } from './reference.ts';

/** A file of a GGUF model that was downloaded or is being downloaded. */
export type Download = {
  /** Its `hf:` URI, which identifies it in all methods. */
  readonly model: string;
  /** Path of the file. */
  readonly path: string;
  /** Bytes received so far. */
  readonly bytes: number;
  /** Null if unknown. */
  readonly totalBytes: number | null;
  /** `partial`: the next request or download continues it. `running`: a process is receiving it. */
  readonly state: 'complete' | 'partial' | 'running';
};

/** Result of checking if a file is still the downloaded one. `unknown`: the hub gave no hash. */
export type DownloadCheck = {
  /** Its `hf:` URI. */
  readonly model: string;
  readonly state: 'right' | 'damaged' | 'unknown';
};

/** Downloads of GGUF models. */
export interface DownloadsResource {
  /** Returns all downloads, sorted by name. */
  list(): Promise<Download[]>;
  /**
   * Deletes a download, or a partial one. Returns the bytes that it took.
   * @throws OnpolicyError `MODEL_NOT_FOUND`; `CONFLICT` while a process receives it
   */
  delete(model: string): Promise<number>;
  /**
   * Computes the hash of one download, or of all complete ones, and compares it with that of the hub.
   * @throws OnpolicyError `MODEL_NOT_FOUND`
   */
  verify(model?: string): Promise<DownloadCheck[]>;
}

const PART = /^(?<file>.+\.gguf)\.(?:[0-9a-f]{16}|unknown)\.part(?:\.\d+(?:-[0-9a-f]+)?)?$/;

/** The downloads of a folder. */
export function downloadsResource(hub: HubOptions): DownloadsResource {
  return {
    list: async () => list(hub),
    delete: async (model) => {
      const found = find(hub, model);
      if (found.some(({ state }) => state === 'running'))
        throw new OnpolicyError('CONFLICT', `${model} is being downloaded; stop that first`);
      for (const { path: file } of found) remove(file);
      return found.reduce((sum, { bytes }) => sum + bytes, 0);
    },
    verify: async (model) => {
      const found = model === undefined ? list(hub) : find(hub, model);
      const checks: DownloadCheck[] = [];
      for (const { model: uri, path: file, state } of found)
        if (state === 'complete') checks.push({ model: uri, state: await check(file) });
      return checks;
    },
  };
}

function list(hub: HubOptions): Download[] {
  const root = downloadFolder(hub);
  if (!fs.existsSync(root)) return [];
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .flatMap((name) => toDownload(root, name.replaceAll(path.sep, '/')))
    .sort((a, b) => (a.model < b.model ? -1 : 1));
}

/** Returns the download of a file below the folder. Returns an empty list if the file is no download. */
function toDownload(root: string, name: string): Download[] {
  const [owner, folder, ...rest] = name.split('/');
  const last = rest.pop();
  if (!owner || !folder || !last) return [];
  const part = PART.exec(last);
  if (!part && !last.endsWith('.gguf')) return [];
  const [repository, branch] = folder.split('@');
  const reference = {
    repository: `${owner}/${repository}`,
    branch: decodeURIComponent(branch ?? 'main'),
    file: null,
    type: 'auto',
  };
  const file = path.join(root, name);
  const bytes = fs.statSync(file, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) return []; // it was deleted meanwhile
  const state = !part ? 'complete' : isBeingWritten(file) ? 'running' : 'partial';
  const model = uriOf(reference, [...rest, part?.groups?.['file'] ?? last].join('/'));
  return [{ model, path: file, bytes, totalBytes: part ? null : bytes, state }];
}

function find(hub: HubOptions, model: string): Download[] {
  const found = list(hub).filter((one) => one.model === model);
  if (found.length > 0) return found;
  throw errorAt('model', 'MODEL_NOT_FOUND', `${model} is not among the downloads in ${downloadFolder(hub)}`);
}

/** Removes a file with the notes beside it. */
function remove(file: string): void {
  try {
    for (const one of [file, ...notesOf(file)]) fs.rmSync(one, { force: true });
  } catch (error) {
    throw storeFailed(`cannot delete ${file}`, error);
  }
}

async function check(file: string): Promise<DownloadCheck['state']> {
  const { hash } = readNote(file, 'hub');
  if (typeof hash !== 'string') return 'unknown';
  return (await hashOf(file, hash)) === hash ? 'right' : 'damaged';
}
