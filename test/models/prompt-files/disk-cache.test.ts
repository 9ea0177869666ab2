/** Prompts of an engine, before and after a restart: what comes from the disk, and what is computed. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Engine } from '../../../src/engine/engine.ts';
import { type Group, Sequence } from '../../../src/engine/sequence.ts';
import { CacheFiles } from '../../../src/models/prompt-files/cache-files.ts';
import { DiskCache } from '../../../src/models/prompt-files/disk-cache.ts';
import { CheckingBackend, type CheckingOptions } from '../../fakes/checking-backend.ts';
import { fakeSampler } from '../../fakes/fake-sampler.ts';
import { predictedToken } from '../../fakes/hash-model.ts';

const OPTIONS: CheckingOptions = {
  kvTokens: 8 * 512,
  slotCount: 8,
  batchTokens: 64,
  isKvUnified: true,
  rollbackTokens: Infinity,
  windowTokens: 0,
  rowTile: 1,
  vocabSize: 50,
};
/** Kinds of caches, and tokens of a prompt of 300 that a later process need not compute. */
const KINDS: [string, Partial<CheckingOptions>, number][] = [
  ['in pieces, in a unified KV cache', {}, 256],
  ['whole, in a non-unified one', { isKvUnified: false }, 290],
  ['whole, with recurrent state', { rollbackTokens: 0 }, 290],
  ['whole, with sliding windows', { windowTokens: 64 }, 290],
];
const PLACES = [130, 290];
const prompt = (count: number, first = 0): number[] =>
  Array.from({ length: count }, (_, i) => (i === 0 ? first : (7 * i + (i >> 3)) % 50));

let home: string;
let model: string;
let notices: string[];
beforeEach(() => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-disk-cache-'));
  model = path.join(home, 'model');
  fs.writeFileSync(model, 'weights');
  notices = [];
});
afterEach(() => fs.rmSync(home, { recursive: true }));

/** One process. */
class Process {
  readonly backend: CheckingBackend;
  readonly engine: Engine;
  readonly files: CacheFiles;
  readonly cache: DiskCache;
  #arrivals = 0;

  constructor(options: Partial<CheckingOptions>, build = 'build', tokenBytes = 2) {
    this.backend = new CheckingBackend({ ...OPTIONS, ...options });
    const policy = { maxRunning: 4, scheduling: 'fcfs', prefixCache: true, checkpointBytes: 100 } as const;
    this.engine = new Engine(this.backend, { ...policy, movesPieces: true });
    this.files = new CacheFiles(home, (text) => notices.push(text));
    const { engine, files } = this;
    const budget = 1e6;
    this.cache = new DiskCache({
      engine,
      files,
      budget,
      tokenBytes,
      model: 'm',
      paths: [model],
      build: [build],
    });
  }

  /** Asks for two tokens, and checks them. Returns how many tokens of the prompt were computed. */
  async ask(
    tokens: number[],
    { cacheKey = '', keeps = true, places = PLACES, signal = undefined as AbortSignal | undefined } = {},
  ): Promise<number> {
    const cells = { prompt: Int32Array.from(tokens), cacheKey, arrival: this.#arrivals++ };
    const within = places.filter((place) => place < tokens.length);
    const kept = this.cache.open({ group: cells, places: within, keeps });
    const group: Group = { ...cells, adapter: 0, priority: 0, checkpoints: within, keeper: kept };
    await kept.load(group, signal);
    const before = this.backend.computedTokens;
    const answer: number[] = [];
    await new Promise<void>((resolve, reject) => {
      this.engine.submit(new Sequence(group, 0, fakeSampler()), {
        onToken: (token) => {
          if (answer.push(token) === 2) resolve();
          return answer.length === 2;
        },
        onComplete: resolve,
        onError: reject,
      });
    });
    kept[Symbol.dispose]();
    const first = predictedToken(tokens, 50, 0);
    expect(answer).toEqual([first, predictedToken([...tokens, first], 50, 0)]);
    return this.backend.computedTokens - before - 1;
  }

  async close(): Promise<void> {
    await this.cache.close();
    await this.engine.close();
  }
}

describe.each(KINDS)('%s', (_, options, saved) => {
  const inProcess = async <T>(work: (process: Process) => Promise<T>, build?: string): Promise<T> => {
    const process = new Process(options, build);
    try {
      return await work(process);
    } finally {
      await process.close();
    }
  };

  it('a prompt goes on where an earlier process has left it, once', async () => {
    const tokens = prompt(300);
    expect(await inProcess((first) => first.ask(tokens))).toBe(300);
    await inProcess(async (second) => {
      expect(await second.ask(tokens)).toBe(300 - saved);
      expect(second.files.stats.loadedTokens).toBe(saved);
      const has = vi.spyOn(second.files, 'has');
      await second.ask(tokens); // from memory
      if (second.engine.movesPieces) expect(has).not.toHaveBeenCalled();
      expect(second.files.stats.loadedTokens).toBe(saved);
    });
    expect(notices).toEqual([]);
  });

  it('several at once read it once, and each has its own tokens', async () => {
    const tokens = prompt(300);
    await inProcess((first) => first.ask(tokens));
    await inProcess(async (second) => {
      await Promise.all([tokens, tokens, [...tokens, 1], prompt(300, 3)].map((each) => second.ask(each)));
      expect(second.files.stats.loadedTokens).toBe(saved);
    });
  });

  it('nothing is taken over by another key, build or model file', async () => {
    const tokens = prompt(300);
    await inProcess((first) => first.ask(tokens));
    expect(await inProcess((second) => second.ask(tokens, { cacheKey: 'salt' }))).toBe(300);
    expect(await inProcess((second) => second.ask(tokens), 'another build')).toBe(300);
    fs.writeFileSync(model, 'weighty');
    expect(await inProcess((second) => second.ask(tokens))).toBe(300);
  });

  it('damaged files cost time and change no token', async () => {
    const tokens = prompt(300);
    await inProcess((first) => first.ask(tokens));
    const [owner] = fs.readdirSync(path.join(home, 'caches'));
    const folder = path.join(home, 'caches', owner!);
    for (const name of fs.readdirSync(folder)) fs.truncateSync(path.join(folder, name), 90);
    expect(await inProcess((second) => second.ask(tokens))).toBe(300);
    expect(notices.length).toBeGreaterThan(0);
    for (let i = 0; i < 2; i++) await inProcess((next) => next.ask(tokens)); // one after another is found damaged and saved again
    expect(await inProcess((last) => last.ask(tokens))).toBe(300 - saved);
  });

  it('a short prompt, and one that is not to be kept, leave nothing', async () => {
    await inProcess(async (first) => {
      await first.ask(prompt(100));
      await first.ask(prompt(300), { keeps: false });
    });
    expect(fs.existsSync(path.join(home, 'caches'))).toBe(false);
  });

  it('one that was aborted while it was read is not loaded further', async () => {
    const tokens = prompt(300);
    await inProcess((first) => first.ask(tokens));
    await inProcess(async (second) => {
      await second.ask(tokens, { signal: AbortSignal.abort() });
      expect(second.files.stats.loadedTokens).toBe(0);
    });
  });
});

it('a beginning that prompts share is written once', async () => {
  const first = new Process({});
  await first.ask(prompt(300));
  await first.ask([...prompt(256), 9, 9, ...prompt(126)]);
  await first.close();
  expect(first.files.stats.savedTokens).toBe(128 * 3);
  const second = new Process({});
  expect(await second.ask([...prompt(256), 9, 9, ...prompt(140)])).toBe(398 - 384);
  await second.close();
});

it('whole caches of a conversation are written again only where they have grown by a quarter', async () => {
  const process = new Process({ isKvUnified: false });
  await process.ask(prompt(300));
  await vi.waitFor(() => expect(process.files.stats.savedTokens).toBe(130 + 290)); // in the background
  await process.ask(prompt(340), { places: [330] }); // 40 more than the 290 of before
  await process.ask(prompt(440), { places: [430] });
  await process.close();
  expect(process.files.stats.savedTokens).toBe(130 + 290 + 430);
});

it('no prompt of media is kept behind the text before them', async () => {
  const process = new Process({});
  const cells = {
    prompt: Int32Array.from([...prompt(140), -1, -1, ...prompt(300)]),
    cacheKey: '',
    arrival: 0,
  };
  const kept = process.cache.open({ group: cells, places: [130, 300], keeps: true });
  await process.ask(prompt(440)); // its cells are there
  kept[Symbol.dispose]();
  await process.close();
  expect(await process.files.ends({ id: fs.readdirSync(path.join(home, 'caches'))[0]!, model: '' })).toEqual([
    128, 256, 384,
  ]);
});

it('whole caches that the budget cannot hold are not even copied', async () => {
  const process = new Process({ isKvUnified: false }, 'build', 1e6 / 200);
  const saveSlot = vi.spyOn(process.backend, 'saveSlot');
  await process.ask(prompt(300));
  await process.close();
  expect(saveSlot).toHaveBeenCalledTimes(1); // of 130 tokens, not of 290
});
