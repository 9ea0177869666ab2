/**
 * Caches of prompts -> files below the home folder, and back. Any number of processes share them: a file appears only when it is complete,
 * is checked when it is read, and may be deleted at any time.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import {
  DamagedFile,
  ifMissing,
  isMissing,
  makeFolder,
  ownFolder,
  readSealed,
  storeFailed,
  writeFlushed,
  writeSealed,
} from '../../common/index.ts';
import { type CachePart, endOf } from './names.ts';

/** Identity of the model and build that computed a cache. Files with another identity are ignored. */
export type FileOwner = {
  /** Digest of everything that decides the numbers of a cache; a folder name. */
  readonly id: string;
  /** Name of the model for people. */
  readonly model: string;
};

/** Tokens and bytes that a process has read and written. */
export type CacheFileStats = {
  readonly loadedTokens: number;
  readonly loadedBytes: number;
  readonly savedTokens: number;
  readonly savedBytes: number;
};

const NOTHING: CacheFileStats = { loadedTokens: 0, loadedBytes: 0, savedTokens: 0, savedBytes: 0 };

/** Returns the sum of several processes' statistics. */
export function sumCacheFileStats(all: readonly CacheFileStats[]): CacheFileStats {
  const sum = (field: keyof CacheFileStats): number => all.reduce((total, one) => total + one[field], 0);
  return {
    loadedTokens: sum('loadedTokens'),
    loadedBytes: sum('loadedBytes'),
    savedTokens: sum('savedTokens'),
    savedBytes: sum('savedBytes'),
  };
}

/** Options for writing a part. */
export type CacheUse = {
  /** Bytes that all files together may take. */
  readonly budget: number;
  /** Time when the prompt arrived. */
  readonly usedMs: number;
};

type Header = { readonly name: string; readonly from: number; readonly to: number };
type Found = { readonly file: string; readonly bytes: number; readonly usedMs: number };

const MAGIC = 'onpolicy-cache 1\n';
/** File in a folder that names the owner of its caches. */
export const OWNER_FILE = 'owner.json';
const ID = /^[0-9a-f]{64}$/;
/** Highest number of bytes that Node reads and hashes at once. */
export const MOST_BYTES = 2 ** 31 - 2 ** 20;
/** Pause in writing after a failure. */
const PAUSE_MS = 60_000;
/** Age after which files that a process left incomplete are deleted. */
const STALE_MS = 3_600_000;
/** Old files are deleted until this share of the budget is used. */
const KEPT_SHARE = 0.9;
/** The folder is measured again after this share of the budget was written, because other processes write too. */
const MEASURED_SHARE = 1 / 16;

/** The cache files of one home folder, for one process. */
export class CacheFiles {
  readonly #folder: string;
  readonly #notice: (text: string) => void;
  readonly #reported = new Set<string>();
  #bytes: number | null = null; // bytes of all files when they were last measured
  #written = 0; // bytes written since then
  #pausedUntil = 0;
  #stats = NOTHING;

  /** `notice` receives each kind of failure once, and damaged files. */
  constructor(home: string, notice: (text: string) => void) {
    this.#folder = cacheFolder(home);
    this.#notice = notice;
  }

  get stats(): CacheFileStats {
    return this.#stats;
  }

  /** True if the disk failed recently, so that nothing is written. */
  get isPaused(): boolean {
    return Date.now() < this.#pausedUntil;
  }

  async has({ id }: FileOwner, { name }: CachePart): Promise<boolean> {
    const stat = await fs.stat(path.join(this.#folder, id, name)).catch(() => null);
    return stat?.isFile() ?? false;
  }

  /** Returns the ends of all caches of an owner, each once, ascending. */
  async ends({ id }: FileOwner): Promise<number[]> {
    const names = await fs.readdir(path.join(this.#folder, id)).catch(() => []);
    const ends = names.map(endOf).filter((end) => end !== null);
    return [...new Set(ends)].sort((a, b) => a - b);
  }

  /** Records that a part was used at this time. Returns false if it is not there. */
  async touch({ id }: FileOwner, { name, to }: CachePart, usedMs: number): Promise<boolean> {
    return await fs.utimes(path.join(this.#folder, id, name), usedAt(usedMs, to), usedAt(usedMs, to)).then(
      () => true,
      () => false,
    );
  }

  /** Reads the cache of a part. Returns null if it is missing, or damaged, in which case it is deleted. */
  async read(owner: FileOwner, part: CachePart, usedMs: number): Promise<Uint8Array | null> {
    const file = path.join(this.#folder, owner.id, part.name);
    try {
      await ownFolder(this.#folder, 'home');
      const { payload: state } = await readSealed<Header>(file, MAGIC, (header) => requirePart(header, part));
      await this.touch(owner, part, usedMs);
      this.#add({ loadedTokens: part.to - part.from, loadedBytes: state.length });
      return state;
    } catch (error) {
      if (isMissing(error)) return null;
      if (!(error instanceof DamagedFile)) {
        this.report(error);
        return null;
      }
      this.#notice(`${file}: ${error.message}; it is deleted`);
      await fs.rm(file, { force: true }).catch(() => {});
      return null;
    }
  }

  /**
   * Writes the cache of a part, and deletes the oldest ones to keep `budget` bytes. Never fails: after an error nothing is written for a
   * while.
   */
  async write(owner: FileOwner, part: CachePart, state: Uint8Array, use: CacheUse): Promise<void> {
    const { budget, usedMs } = use;
    if (this.isPaused || state.length > Math.min(budget, MOST_BYTES)) return;
    const folder = path.join(this.#folder, owner.id);
    try {
      await this.#makeRoom(state.length, budget);
      await makeFolder(folder, 0o700);
      await ownFolder(this.#folder, 'home');
      const { name, from, to } = part;
      const about = `${JSON.stringify({ model: owner.model })}\n`;
      const ownerFile = path.join(folder, OWNER_FILE);
      if (!(await fs.stat(ownerFile).catch(ifMissing(null)))) await writeFlushed(ownerFile, [about], 0o600);
      const header: Header = { name, from, to };
      const usedSeconds = usedAt(usedMs, to);
      await writeSealed(path.join(folder, name), { magic: MAGIC, header, payload: state, usedSeconds });
      this.#written += state.length;
      this.#add({ savedTokens: to - from, savedBytes: state.length });
    } catch (error) {
      const { code } = ((error as Error).cause ?? error) as { code?: string };
      if (code === 'ENOENT') return; // the folder was deleted
      this.#pausedUntil = Date.now() + PAUSE_MS;
      this.report(error);
    }
  }

  async #makeRoom(bytes: number, budget: number): Promise<void> {
    const isKnown = this.#bytes !== null && this.#written < MEASURED_SHARE * budget;
    if (isKnown && this.#bytes! + this.#written + bytes <= budget) return;
    const all = (await Promise.all((await folders(this.#folder)).map(filesIn))).flat();
    let total = all.reduce((sum, found) => sum + found.bytes, 0);
    all.sort((a, b) => a.usedMs - b.usedMs);
    const limit = total + bytes <= budget ? budget : KEPT_SHARE * budget;
    for (const { file, bytes: freed } of all) {
      if (total + bytes <= limit) break;
      await fs.rm(file, { force: true });
      total -= freed;
    }
    this.#bytes = total;
    this.#written = 0;
  }

  #add(more: Partial<CacheFileStats>): void {
    this.#stats = sumCacheFileStats([this.#stats, { ...NOTHING, ...more }]);
  }

  /** Reports a failure once. */
  report(cause: unknown): void {
    const { message } = storeFailed(`prompts are not kept in ${this.#folder}`, cause);
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#notice(message);
  }
}

/**
 * Returns the access and change time of a file, in seconds. Parts at the end of a prompt get an older time, so that they are deleted
 * before the parts they continue.
 */
function usedAt(usedMs: number, to: number): number {
  return (usedMs - to / 1000) / 1000;
}

function requirePart(header: Header, { name, from, to }: CachePart): void {
  if (header.name !== name || header.from !== from || header.to !== to)
    throw new DamagedFile('the cache belongs to another prompt');
}

/** Returns the folder of all caches of a home folder. */
export function cacheFolder(home: string): string {
  return path.join(path.resolve(home), 'caches');
}

/** Returns the folders of owners. */
export async function folders(root: string): Promise<string[]> {
  const names = await fs.readdir(root).catch(ifMissing([]));
  return names.filter((name) => ID.test(name)).map((name) => path.join(root, name));
}

/** Returns the files of one owner. Deletes files that a process left incomplete. */
export async function filesIn(folder: string): Promise<Found[]> {
  const found: Found[] = [];
  for (const name of await fs.readdir(folder).catch(ifMissing([]))) {
    const file = path.join(folder, name);
    const stat = await fs.stat(file).catch(ifMissing(null));
    if (!stat?.isFile()) continue;
    if (endOf(name) !== null) found.push({ file, bytes: stat.size, usedMs: stat.mtimeMs });
    else if (name.endsWith('.part') && Date.now() - stat.mtimeMs > STALE_MS)
      await fs.rm(file, { force: true });
  }
  return found;
}
