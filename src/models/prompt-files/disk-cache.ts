/** Prompts of one loaded model -> their caches on the disk, and from the disk back into its engine. */

import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { CacheKeeper, CellOwner, Engine, Group } from '../../engine/index.ts';
import { type CacheFiles, type FileOwner, MOST_BYTES } from './cache-files.ts';
import { digestModel } from './kv-transfer.ts';
import { type CachePart, partsAt } from './names.ts';

/** Tokens of a piece. Saving one delays a step by its length, and shorter caches are not kept. */
const PIECE_TOKENS = 128;
/** A whole cache is kept if it is longer by this share than the longest one on the disk. */
const GROWTH = 0.25;
/** While other requests wait for tokens, saving takes one part in this many of the time. */
const BUSY_SHARE = 40;
/** No further whole cache is taken while more than this many bytes wait to be written. */
const MOST_PENDING = 2 ** 28;
/** Largest share of the free memory for a whole cache. */
const MEMORY_SHARE = 0.25;
/** Highest number of prompts that wait to be saved. Older ones are dropped. */
const MOST_QUEUED = 64;
/** Milliseconds that unloading a model waits for prompts that are not saved yet. */
const CLOSE_MS = 10_000;

/** Errors that are not reported: the engine or this cache is closed, or the engine has no room. */
const EXPECTED = ['CLOSED', 'ABORT_ERR', 'KV_FULL'];

/** The model whose caches are stored, and the settings that decide them. */
export type DiskCacheOptions = {
  readonly files: CacheFiles;
  readonly engine: Engine;
  /** Bytes that all caches of the home folder may take. */
  readonly budget: number;
  /** Bytes of one token in the cache. */
  readonly tokenBytes: number;
  /** Name of the model for people. */
  readonly model: string;
  /** Files that identify the model by their content. */
  readonly paths: readonly string[];
  /** Other settings that decide the numbers of its caches. */
  readonly build: readonly string[];
};

/** A prompt whose cache is on the disk or will be. */
type Kept = { readonly owner: CellOwner; readonly tokens: Int32Array; readonly usedMs: number };

/** Options for the cache of one prompt. */
type PromptCacheOptions = {
  readonly group: CellOwner & Pick<Group, 'prompt'>;
  /** Token positions where a later prompt is likely to diverge, ascending. */
  readonly places: readonly number[];
  /** True if the prompt is saved, false if it is only loaded. */
  readonly keeps: boolean;
};

/** The caches of one loaded model. */
export class DiskCache {
  readonly #options: DiskCacheOptions;
  readonly #owner: Promise<FileOwner>;
  readonly #jobs: (() => Promise<void>)[] = [];
  readonly #stop = new AbortController();
  #loading: Promise<unknown> = Promise.resolve();
  #saving: Promise<void> | null = null;
  #pendingBytes = 0; // bytes of whole caches
  #isClosing = false;

  constructor(options: DiskCacheOptions) {
    this.#options = options;
    this.#owner = ownerOf(options);
    this.#owner.catch(() => {}); // reported where it is used
  }

  /** Returns the cache of a prompt. */
  open(options: PromptCacheOptions): PromptCache {
    return new PromptCache(this, options, this.#options.engine.movesPieces);
  }

  /** @internal Loads the part that the prefix cache lacks. Returns how many leading tokens are on the disk. */
  async load(group: Group, kept: Kept, signal: AbortSignal | undefined): Promise<number> {
    const { engine } = this.#options;
    const { owner, tokens } = kept;
    // Skips the search for pieces if the prefix cache has nearly all tokens.
    if (engine.movesPieces && tokens.length - engine.cachedTokens(owner, tokens) < PIECE_TOKENS) return 0;
    try {
      const parts = await this.#find(kept);
      if (parts.length === 0) return 0;
      const turn = this.#loading.then(() => this.#load(group, parts, kept, signal));
      this.#loading = turn.catch(() => {});
      return await turn;
    } catch (error) {
      this.#failed(error); // the prompt is computed
      return 0;
    }
  }

  /** Returns the parts of a prompt that are on the disk, in the order in which they are loaded. */
  async #find({ owner: { cacheKey }, tokens }: Kept): Promise<CachePart[]> {
    const { engine, files } = this.#options;
    const holder = await this.#owner;
    const found: CachePart[] = [];
    if (engine.movesPieces) {
      for (const part of piecesOf(cacheKey, tokens)) {
        if (!(await files.has(holder, part))) break;
        found.push(part);
      }
      return found;
    }
    // The last token must be computed, because its logits are needed.
    const ends = (await files.ends(holder)).filter((end) => end < tokens.length);
    for (const part of partsAt(cacheKey, tokens, ends, true).reverse())
      if (await files.has(holder, part)) return [part];
    return found;
  }

  /** Loads parts. Only one prompt is loaded at a time. */
  async #load(
    group: Group,
    parts: readonly CachePart[],
    { owner, tokens, usedMs }: Kept,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { engine, files } = this.#options;
    const end = parts.at(-1)!.to;
    if (end - engine.cachedTokens(owner, tokens.subarray(0, end)) < PIECE_TOKENS) return end; // another request has loaded it
    const holder = await this.#owner;
    const read = async (part: CachePart | undefined) =>
      part && !signal?.aborted ? await files.read(holder, part, usedMs) : null;
    let loaded = 0;
    let next = read(parts[0]);
    for (const [i, { from, to }] of parts.entries()) {
      const state = await next;
      if (!state) break;
      next = read(parts[i + 1]);
      const start = tokens.subarray(0, to);
      if (from === 0) await engine.adopt(group, start, state);
      else if (!(await engine.loadPiece(owner, start, from, state))) break;
      loaded = to;
    }
    await next; // no read continues after the request's end
    return loaded;
  }

  /** @internal Returns true if a whole cache of this many tokens may be saved. Caches that wait to be written take memory. */
  canKeep(tokens: number): boolean {
    const { files, budget, tokenBytes } = this.#options;
    const most = Math.min(budget, MOST_BYTES, MEMORY_SHARE * process.availableMemory());
    return this.#pendingBytes <= MOST_PENDING && tokens * tokenBytes <= most && !files.isPaused;
  }

  /** @internal Writes a whole cache. */
  keep({ owner, tokens, usedMs }: Kept, state: Uint8Array): void {
    const [part] = partsAt(owner.cacheKey, tokens, [tokens.length], true);
    this.#pendingBytes += state.length;
    this.#queue(() =>
      this.#write(part!, state, usedMs).finally(() => {
        this.#pendingBytes -= state.length;
      }),
    );
  }

  /** @internal Saves the pieces of a prompt that are not on the disk. */
  keepPieces(kept: Kept): void {
    if (this.#jobs.length === MOST_QUEUED) this.#jobs.shift();
    this.#queue(() => this.#savePieces(kept));
  }

  async #savePieces({ owner, tokens, usedMs }: Kept): Promise<void> {
    const { engine, files } = this.#options;
    const holder = await this.#owner;
    for (const part of piecesOf(owner.cacheKey, tokens)) {
      if (await files.touch(holder, part, usedMs)) continue;
      if (files.isPaused || this.#stop.signal.aborted) return;
      const saved = await engine.savePiece(owner, tokens.subarray(0, part.to), part.from);
      if (!saved) return;
      await this.#write(part, saved.state, usedMs);
      if (engine.isBusy && !this.#isClosing)
        await setTimeout(BUSY_SHARE * saved.ms, null, { ref: false, signal: this.#stop.signal });
    }
  }

  async #write(part: CachePart, state: Uint8Array, usedMs: number): Promise<void> {
    const { files, budget } = this.#options;
    await files.write(await this.#owner, part, state, { budget, usedMs });
  }

  #queue(job: () => Promise<void>): void {
    if (this.#isClosing) return;
    this.#jobs.push(job);
    this.#saving ??= this.#run();
  }

  async #run(): Promise<void> {
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift())
      await job().catch((error: unknown) => this.#failed(error));
    this.#saving = null;
  }

  /** Reports an error. A request does not fail if its prompt cannot be saved or loaded. */
  #failed(error: unknown): void {
    const { code = '' } = error as { code?: string };
    if (!EXPECTED.includes(code)) this.#options.files.report(error);
  }

  /** Saves waiting prompts for some seconds at most, if no request runs. Call it before closing the engine. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const end = (): void => {
      this.#jobs.length = 0;
      this.#stop.abort();
    };
    const timer = globalThis.setTimeout(end, this.#options.engine.isBusy ? 0 : CLOSE_MS);
    await this.#saving;
    clearTimeout(timer);
  }
}

/** The cache of one prompt, used by one request. Its disposal at the end of the request saves the prompt. */
export class PromptCache implements CacheKeeper, Disposable {
  readonly places: readonly number[];
  readonly #cache: DiskCache;
  readonly #kept: Kept;
  readonly #keepsPieces: boolean;
  #stored = 0; // leading tokens that are on the disk

  /** `hasPieces`: true if caches are saved in pieces. */
  constructor(cache: DiskCache, { group, places, keeps }: PromptCacheOptions, hasPieces: boolean) {
    this.#cache = cache;
    const media = group.prompt.findIndex((id) => id < 0); // the ids that stand for media differ between processes
    const tokens = media < 0 ? group.prompt : group.prompt.subarray(0, media);
    const { cacheKey, arrival } = group;
    this.#kept = { owner: { cacheKey, arrival }, tokens, usedMs: Date.now() };
    this.#keepsPieces = keeps && hasPieces;
    this.places =
      keeps && !hasPieces ? places.filter((place) => place >= PIECE_TOKENS && place <= tokens.length) : [];
  }

  /** Loads the part of the prompt that is on the disk and not in the prefix cache. */
  async load(group: Group, signal: AbortSignal | undefined): Promise<void> {
    if (this.#kept.tokens.length < PIECE_TOKENS) return;
    this.#stored = await this.#cache.load(group, this.#kept, signal);
  }

  wants(tokens: number): boolean {
    const grown = tokens - this.#stored >= Math.max(PIECE_TOKENS, GROWTH * this.#stored);
    return grown && this.places.includes(tokens) && this.#cache.canKeep(tokens);
  }

  take(tokens: number, state: Uint8Array | null): void {
    this.#stored = tokens;
    if (state) this.#cache.keep({ ...this.#kept, tokens: this.#kept.tokens.slice(0, tokens) }, state);
  }

  [Symbol.dispose](): void {
    if (this.#keepsPieces && this.#kept.tokens.length >= PIECE_TOKENS) this.#cache.keepPieces(this.#kept);
  }
}

function piecesOf(cacheKey: string, tokens: Int32Array): CachePart[] {
  const count = Math.floor(tokens.length / PIECE_TOKENS);
  const ends = Array.from({ length: count }, (_, i) => (i + 1) * PIECE_TOKENS);
  return partsAt(cacheKey, tokens, ends, false);
}

/** Returns the owner of a model's caches. Model files are identified by their size, time and samples of their content. */
async function ownerOf({ engine, model, paths, build }: DiskCacheOptions): Promise<FileOwner> {
  const hash = createHash('sha256');
  const parts = [engine.cacheShape, String(engine.movesPieces), ...build];
  for (const file of paths) parts.push(await digestModel(file), String((await fs.stat(file)).mtimeMs));
  return { id: hash.update(JSON.stringify(parts)).digest('hex'), model };
}
