/**
 * Caches of prompts -> files below the home folder, and back. Any number of processes share them: a file appears whole, is checked when
 * it is read, and may be gone at any time.
 */
import { randomUUID, webcrypto } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import {
  ifMissing,
  isMissing,
  makeFolder,
  ownFolder,
  parseJson,
  rename,
  storeFailed,
} from '../common/index.ts';
import { type CachePart, endOf } from './names.ts';

/** Who computed caches: nobody else may load them. */
export type FileOwner = {
  /** Digest of all that decides the numbers of a cache: a folder name. */
  readonly id: string;
  /** What people call the model. */
  readonly model: string;
};

/** What a process has read and written. */
export type CacheFileStats = {
  readonly loadedTokens: number;
  readonly loadedBytes: number;
  readonly savedTokens: number;
  readonly savedBytes: number;
};

const NOTHING: CacheFileStats = { loadedTokens: 0, loadedBytes: 0, savedTokens: 0, savedBytes: 0 };

/** The numbers of several processes together. */
export function sumCacheFileStats(all: readonly CacheFileStats[]): CacheFileStats {
  const sum = (field: keyof CacheFileStats): number => all.reduce((total, one) => total + one[field], 0);
  return {
    loadedTokens: sum('loadedTokens'),
    loadedBytes: sum('loadedBytes'),
    savedTokens: sum('savedTokens'),
    savedBytes: sum('savedBytes'),
  };
}

/** For whom a part is written. */
export type CacheUse = {
  /** Bytes that all files together may take. */
  readonly budget: number;
  /** When its prompt came. */
  readonly usedMs: number;
};

type Header = { readonly name: string; readonly from: number; readonly to: number; readonly sha256: string };
type Found = { readonly file: string; readonly bytes: number; readonly usedMs: number };

const MAGIC = 'onpolicy-cache 1\n';
const HEADER_BYTES = 4096;
/** Says in a folder whose caches these are. */
export const OWNER_FILE = 'owner.json';
const ID = /^[0-9a-f]{64}$/;
/** What Node reads and hashes at once. */
export const MOST_BYTES = 2 ** 31 - 2 ** 20;
/** After a failure nothing is written for so long. */
const PAUSE_MS = 60_000;
/** Files that a process has left in the middle of writing. */
const STALE_MS = 3_600_000;
/** Deletes old files until this much of the budget is left. */
const KEPT_SHARE = 0.9;
/** Others write, too: the folder is measured again after so much of the budget. */
const MEASURED_SHARE = 1 / 16;

/** The files of one home folder, for one process. */
export class CacheFiles {
  readonly #folder: string;
  readonly #notice: (text: string) => void;
  readonly #reported = new Set<string>();
  #bytes: number | null = null; // of all files when they were last measured
  #written = 0; // bytes since then
  #pausedUntil = 0;
  #stats = NOTHING;

  /** `notice` hears once of each kind of failure, and of files that are damaged. */
  constructor(home: string, notice: (text: string) => void) {
    this.#folder = cacheFolder(home);
    this.#notice = notice;
  }

  get stats(): CacheFileStats {
    return this.#stats;
  }

  /** Whether the disk has failed a moment ago: nothing is written. */
  get isPaused(): boolean {
    return Date.now() < this.#pausedUntil;
  }

  async has({ id }: FileOwner, { name }: CachePart): Promise<boolean> {
    const stat = await fs.stat(path.join(this.#folder, id, name)).catch(() => null);
    return stat?.isFile() ?? false;
  }

  /** Ends of all caches of an owner, each once, ascending. */
  async ends({ id }: FileOwner): Promise<number[]> {
    const names = await fs.readdir(path.join(this.#folder, id)).catch(() => []);
    const ends = names.map(endOf).filter((end) => end !== null);
    return [...new Set(ends)].sort((a, b) => a - b);
  }

  /** Records that a part was used at this time. Returns false if it is not there. */
  async touch({ id }: FileOwner, { name, to }: CachePart, usedMs: number): Promise<boolean> {
    return await fs.utimes(path.join(this.#folder, id, name), ...usedAt(usedMs, to)).then(
      () => true,
      () => false,
    );
  }

  /** The cache of a part; null: it is not there, or damaged and now deleted. */
  async read(owner: FileOwner, part: CachePart, usedMs: number): Promise<Uint8Array | null> {
    const file = path.join(this.#folder, owner.id, part.name);
    try {
      await ownFolder(this.#folder, 'home');
      const state = await open(await fs.readFile(file), part);
      await this.touch(owner, part, usedMs);
      this.#add({ loadedTokens: part.to - part.from, loadedBytes: state.length });
      return state;
    } catch (error) {
      if (isMissing(error)) return null;
      if (!(error instanceof Damaged)) {
        this.report(error);
        return null;
      }
      this.#notice(`${file}: ${error.message}; it is deleted`);
      await fs.rm(file, { force: true }).catch(() => {});
      return null;
    }
  }

  /** Writes the cache of a part; the oldest ones are deleted to keep `budget` bytes. Never fails: after an error nothing is written for a while. */
  async write(owner: FileOwner, part: CachePart, state: Uint8Array, use: CacheUse): Promise<void> {
    const { budget, usedMs } = use;
    if (this.isPaused || state.length > Math.min(budget, MOST_BYTES)) return;
    const folder = path.join(this.#folder, owner.id);
    const temporary = path.join(folder, `${part.name}.${randomUUID()}.part`);
    try {
      await this.#makeRoom(state.length, budget);
      await makeFolder(folder, 0o700);
      await ownFolder(this.#folder, 'home');
      const { name, from, to } = part;
      const header: Header = { name, from, to, sha256: await sha256(state) };
      const about = `${JSON.stringify({ model: owner.model })}\n`;
      await fs.writeFile(path.join(folder, OWNER_FILE), about, { mode: 0o600 });
      await fs.writeFile(temporary, [MAGIC, `${JSON.stringify(header)}\n`, state], {
        mode: 0o600,
        flag: 'wx',
      });
      await fs.utimes(temporary, ...usedAt(usedMs, to));
      await rename(temporary, path.join(folder, name));
      this.#written += state.length;
      this.#add({ savedTokens: to - from, savedBytes: state.length });
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => {});
      if ((error as { code?: string }).code === 'ENOENT') return; // somebody has deleted the folder
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

  /** Tells of a failure, once. */
  report(cause: unknown): void {
    const { message } = storeFailed(`prompts are not kept in ${this.#folder}`, cause);
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#notice(message);
  }
}

/** Access and change time of a file, in seconds. Parts at the end of a prompt are older: they are deleted before those they build on. */
function usedAt(usedMs: number, to: number): [number, number] {
  const seconds = (usedMs - to / 1000) / 1000;
  return [seconds, seconds];
}

class Damaged extends Error {}

async function open(content: Buffer, part: CachePart): Promise<Uint8Array> {
  const end = content.subarray(0, HEADER_BYTES).indexOf('\n', MAGIC.length);
  if (content.subarray(0, MAGIC.length).toString() !== MAGIC || end < 0)
    throw new Damaged('this is not the cache of a prompt');
  const header = parseJson(content.subarray(MAGIC.length, end).toString()) as Header | undefined;
  if (header === undefined) throw new Damaged('the cache is damaged');
  const { name, from, to } = part;
  const state = content.subarray(end + 1);
  if (header?.name !== name || header.from !== from || header.to !== to)
    throw new Damaged('the cache belongs to another prompt');
  if (header.sha256 !== (await sha256(state))) throw new Damaged('the cache is damaged');
  return state;
}

/** Off the event loop. */
async function sha256(bytes: Uint8Array): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
}

/** The folder of all caches of a home folder. */
export function cacheFolder(home: string): string {
  return path.join(path.resolve(home), 'caches');
}

/** Folders of owners. */
export async function folders(root: string): Promise<string[]> {
  const names = await fs.readdir(root).catch(ifMissing([]));
  return names.filter((name) => ID.test(name)).map((name) => path.join(root, name));
}

/** The files of one owner; what a process has left unfinished is deleted. */
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
