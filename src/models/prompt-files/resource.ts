/** A home folder -> `runtime.diskCaches`, the caches of prompts in it. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing, parseJson, storeFailed } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { cacheFolder, filesIn, folders, OWNER_FILE } from './cache-files.ts';

/** Caches of prompts that one model computed with one configuration: build of the engine, cache type and placement. */
export type DiskCacheRecord = {
  readonly id: string;
  /** Name of the model. Empty if the file with the name is lost. */
  readonly model: string;
  /** Number of files, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Time of the last write or load of one of them, in seconds since 1970. */
  readonly used_at: number;
};

/** Caches of prompts in the home folder, written by this process and others. */
export interface DiskCachesResource {
  /** Returns all records, most recently used first. */
  list(): Promise<DiskCacheRecord[]>;
  /**
   * Deletes the caches of one record, or all. Loaded models continue and write new ones.
   * @throws OnpolicyError `NOT_FOUND` for an unknown id
   */
  delete(id?: string): Promise<void>;
}

/** Returns the resource of a home folder. */
export function diskCachesResource(home: string): DiskCachesResource {
  const root = cacheFolder(home);
  return {
    list: async () => {
      const records = await Promise.all((await folders(root)).map(recordOf));
      return records.filter(({ files }) => files > 0).sort((a, b) => b.used_at - a.used_at);
    },
    delete: async (id) => {
      const found = (await folders(root)).filter(
        (folder) => id === undefined || path.basename(folder) === id,
      );
      if (id !== undefined && found.length === 0)
        throw new OnpolicyError('NOT_FOUND', `there are no caches ${String(id)} in ${root}`);
      for (const folder of found)
        await fs.rm(folder, { recursive: true, force: true }).catch((cause: unknown) => {
          throw storeFailed(`cannot delete ${folder}`, cause);
        });
    },
  };
}

async function recordOf(folder: string): Promise<DiskCacheRecord> {
  const files = await filesIn(folder);
  return {
    id: path.basename(folder),
    model: await modelOf(folder),
    files: files.length,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    used_at: Math.floor(files.reduce((last, { usedMs }) => Math.max(last, usedMs), 0) / 1000),
  };
}

async function modelOf(folder: string): Promise<string> {
  const text = await fs.readFile(path.join(folder, OWNER_FILE), 'utf8').catch(ifMissing('{}'));
  return String((parseJson(text) as { readonly model?: unknown } | null | undefined)?.model ?? '');
}
