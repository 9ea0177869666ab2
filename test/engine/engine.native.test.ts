import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { loadAddon, type SampledRows } from '../../src/engine/native/index.ts';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { Sequence } from '../../src/engine/sequence.ts';
import { type GgufModel, loadGguf } from '../../src/models/formats/gguf.ts';
import { greedyTokens, lastLogits, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';

const root = path.resolve(import.meta.dirname, '../..');
const MODELS = {
  embedded: path.join(root, 'models/onpolicy-tiny.gguf'),
  llama: path.join(root, 'test/golden/training/tiny-llama.gguf'),
  qwen2: path.join(root, 'test/golden/training/tiny-qwen2.gguf'),
  qwen3: path.join(root, 'test/golden/training/tiny-qwen3.gguf'),
};
const LAYOUTS = [true, false]; // unified KV cache, and non-unified
const cleanup: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of cleanup.reverse()) await close();
});

const loaded = new Map<string, Promise<GgufModel>>();
function model(file: string): Promise<GgufModel> {
  let found = loaded.get(file);
  if (!found) {
    found = loadGguf({ path: file, gpu: false, kernels: 'plain' }); // the bare engine's bits
    loaded.set(file, found);
    cleanup.push(async () => (await found!).close());
  }
  return found;
}

async function engine(file: string, isKvUnified: boolean, maxRunning = 32): Promise<Engine> {
  const gguf = await model(file);
  const backend = await gguf.createBackend({
    kvTokens: isKvUnified ? 4096 : 32 * 256,
    isKvUnified,
    batchTokens: 128,
    slotCount: 32,
    maxOutputs: 32,
    threads: 1,
  });
  const made = new Engine(backend, { maxRunning, scheduling: 'fcfs', prefixCache: true });
  cleanup.push(() => made.close());
  return made;
}

let arrivals = 0;

type Sampled = { readonly tokens: number[]; readonly rows: { logprob: number; top: [number, number][] }[] };

/** Samples `count` tokens after a prompt. */
function sample(
  gguf: GgufModel,
  on: Engine,
  prompt: readonly number[],
  count: number,
  seed: bigint,
  plan: Omit<SamplerPlanOptions, 'vocabSize'>,
): Promise<Sampled> {
  const { Sampler, SamplerPlan } = loadAddon();
  const sampler = new Sampler(new SamplerPlan({ vocabSize: gguf.native.vocabSize, ...plan }), seed);
  sampler.acceptPrompt(Int32Array.from(prompt));
  const group = {
    prompt: Int32Array.from(prompt),
    cacheKey: '',
    adapter: 0,
    priority: 0,
    arrival: arrivals++,
  };
  return new Promise((resolve, reject) => {
    const result: Sampled = { tokens: [], rows: [] };
    on.submit(new Sequence(group, 0, sampler), {
      onToken(token, rows, row) {
        result.tokens.push(token);
        result.rows.push({ logprob: rows.logprobs[row]!, top: alternatives(rows, row) });
        if (result.tokens.length === count) resolve(result);
        return result.tokens.length === count;
      },
      onComplete: () => resolve(result),
      onError: reject,
    });
  });
}

function alternatives(rows: SampledRows, row: number): [number, number][] {
  const from = rows.topOffsets[row]!;
  return Array.from({ length: rows.topOffsets[row + 1]! - from }, (_, i) => [
    rows.topIds[from + i]!,
    rows.topLogprobs[from + i]!,
  ]);
}

/** Prompts of different lengths, some with common beginnings; the same on every run. */
function prompts(vocabSize: number, count: number): number[][] {
  return Array.from({ length: count }, (_, i) =>
    Array.from(
      { length: 3 + ((i * 7) % 40) },
      (_, at) => (at < 5 ? at * 11 + (i % 3) : i * 131 + at * 17) % vocabSize,
    ),
  );
}

/** Chats with the embedded model, which knows what to say; other models get the made-up prompts. */
async function greedyPrompts(gguf: GgufModel): Promise<number[][]> {
  if (gguf.path !== MODELS.embedded) return prompts(gguf.native.vocabSize, 20);
  const questions = JSON.parse(
    fs.readFileSync(path.join(root, 'test/golden/models/questions.json'), 'utf8'),
  ) as [string, string, string][];
  const chats = questions
    .filter((_, i) => i % 12 === 0)
    .slice(0, 20)
    .map(([, question]) => `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`);
  const options = { addSpecial: false, parseSpecial: true };
  return await Promise.all(chats.map(async (chat) => Array.from(await gguf.tokenizer.encode(chat, options))));
}

const missing = whyNoBareEngine();
if (missing) process.stderr.write(`skipped: comparison with the bare engine: ${missing}\n`);

describe.skipIf(missing !== null)('against the bare engine', () => {
  it.each(
    Object.entries(MODELS).flatMap(([name, file]) =>
      LAYOUTS.map((isKvUnified) => [name, isKvUnified, file] as const),
    ),
  )(
    'greedy tokens of %s are those of its argmax loop, 20 prompts at once (unified KV cache: %s)',
    async (_, isKvUnified, file) => {
      const gguf = await model(file);
      const on = await engine(file, isKvUnified);
      const given = await greedyPrompts(gguf);
      expect(given).toHaveLength(20);
      const answers = await Promise.all(
        given.map((prompt) => sample(gguf, on, prompt, 24, 1n, { temperature: 0 })),
      );
      expect(answers.map(({ tokens }) => tokens)).toEqual(
        greedyTokens(file, given, 24, { f32: gguf.cacheType === 'f32' }),
      );
    },
  );

  it.each(Object.entries(MODELS))(
    'log-probabilities of %s are its log-softmax, within 1e-4',
    async (_, file) => {
      const gguf = await model(file);
      const on = await engine(file, true);
      const given = prompts(gguf.native.vocabSize, 5);
      const logits = lastLogits(file, given, { f32: gguf.cacheType === 'f32' });
      for (const [i, prompt] of given.entries()) {
        const topLogprobs = gguf.native.vocabSize;
        // the pipeline must not show in them
        const plan = { temperature: 0.7, top_k: 5, repetition_penalty: 1.5, topLogprobs };
        const { rows } = await sample(gguf, on, prompt, 1, 7n, plan);
        const row = logits[i]!;
        const max = row.reduce((best, value) => Math.max(best, value), -Infinity);
        const sum = row.reduce((total, value) => total + Math.exp(value - max), 0);
        const exact = Array.from(row, (value) => value - max - Math.log(sum));
        expect(rows[0]!.top).toHaveLength(topLogprobs);
        for (const [id, logprob] of rows[0]!.top) expect(Math.abs(logprob - exact[id]!)).toBeLessThan(1e-4);
        const sorted = exact.slice().sort((a, b) => b - a);
        for (const [at, [, logprob]] of rows[0]!.top.entries())
          expect(Math.abs(logprob - sorted[at]!)).toBeLessThan(1e-4);
      }
    },
  );
});

describe('seeds', () => {
  it.each(
    (['llama', 'qwen2', 'qwen3'] as const).flatMap((name) =>
      LAYOUTS.map((isKvUnified) => [name, isKvUnified] as const),
    ),
  )('give the same tokens alone and in company, %s (unified KV cache: %s)', async (name, isKvUnified) => {
    const gguf = await model(MODELS[name]);
    const plan = { temperature: 1, top_p: 0.95, min_p: 0.01, repetition_penalty: 1.1 };
    const given = prompts(gguf.native.vocabSize, 16);
    const alone: number[][] = [];
    for (const [i, prompt] of given.entries()) {
      const on = await engine(MODELS[name], isKvUnified, 1);
      alone.push((await sample(gguf, on, prompt, 20, BigInt(i), plan)).tokens);
      await on.close();
    }
    const on = await engine(MODELS[name], isKvUnified);
    const company = await Promise.all(
      given.map((prompt, i) => sample(gguf, on, prompt, 20, BigInt(i), plan)),
    );
    expect(company.map(({ tokens }) => tokens)).toEqual(alone);
    const other = await sample(gguf, on, given[0]!, 20, 99n, plan);
    if (name !== 'qwen3') expect(other.tokens).not.toEqual(alone[0]);
  });
});

describe('loading', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-test-'));
  cleanup.push(() => fs.rmSync(folder, { recursive: true }));
  const good = fs.readFileSync(MODELS.llama);
  const damaged = (name: string, content: Buffer): string => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, content);
    return file;
  };
  const renamed = Buffer.from(good);
  renamed.write('zzzzz', good.indexOf('llama', 0, 'latin1'), 'latin1'); // general.architecture

  it.each<[string, () => string, string, RegExp]>([
    ['a missing file', () => path.join(folder, 'nothing.gguf'), 'MODEL_NOT_FOUND', /no file/],
    ['a folder', () => folder, 'MODEL_INVALID', /not a file/],
    ['a file that is no GGUF', () => path.join(root, 'package.json'), 'MODEL_INVALID', /not a GGUF file/],
    ['an empty file', () => damaged('empty.gguf', Buffer.alloc(0)), 'MODEL_INVALID', /not a GGUF file/],
    [
      'a cut header',
      () => damaged('header.gguf', good.subarray(0, 400)),
      'MODEL_INVALID',
      /damaged or truncated/,
    ],
    [
      'cut weights',
      () => damaged('weights.gguf', good.subarray(0, good.length - 1000)),
      'MODEL_INVALID',
      /is truncated: it needs \d+ bytes/,
    ],
    ['an unknown architecture', () => damaged('other.gguf', renamed), 'MODEL_INVALID', /architecture.*zzzzz/],
  ])('refuses %s with its own error', async (_, file, code, message) => {
    await expect(loadGguf({ path: file(), gpu: false })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it('survives a file cut or overwritten anywhere', async () => {
    for (let i = 0; i < 60; i++) {
      const content = Buffer.from(good.subarray(0, i % 2 ? good.length : Math.floor((good.length * i) / 60)));
      for (let at = (i * 37) % 997; at < Math.min(content.length, 60_000); at += 997)
        content[at] = (i * 89 + at) & 255;
      const result = await loadGguf({ path: damaged('fuzz.gguf', content), gpu: false }).catch(
        (error: Error) => error,
      );
      if (result instanceof Error)
        expect(result).toMatchObject({
          code: expect.stringMatching(/^(MODEL_INVALID|UNSUPPORTED|OUT_OF_MEMORY)$/),
        });
      else result.close();
    }
  });

  it('reports progress and can be aborted', async () => {
    const seen: number[] = [];
    const gguf = await loadGguf({
      path: MODELS.embedded,
      gpu: false,
      onProgress: (fraction) => seen.push(fraction),
    });
    gguf.close();
    await expect.poll(() => seen.at(-1)).toBe(1); // told from another thread
    expect(seen).toEqual(seen.slice().sort((a, b) => a - b));
    const abort = new AbortController();
    const loading = loadGguf({ path: MODELS.embedded, gpu: false, signal: abort.signal });
    abort.abort();
    await expect(loading).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('says when a cache cannot fit into memory', async () => {
    const gguf = await model(MODELS.llama);
    const limits = { isKvUnified: true, batchTokens: 64, slotCount: 4, maxOutputs: 4, threads: 1 };
    await expect(gguf.createBackend({ ...limits, kvTokens: 2 ** 31 - 256 })).rejects.toMatchObject({
      code: 'OUT_OF_MEMORY',
    });
  });
});

describe('the addon', () => {
  it('checks every array of a step before the engine sees it', async () => {
    const gguf = await model(MODELS.llama);
    const context = await loadAddon().createContext(gguf.native, {
      kvTokens: 256,
      isKvUnified: true,
      batchTokens: 8,
      maxSequences: 4,
      maxOutputs: 4,
      threads: 1,
      fusedAttention: true,
      cacheOnGpu: true,
      isWindowCacheFull: true,
      cacheType: 'f32',
    });
    const none = new Int32Array(0);
    const fine = {
      adapter: 0,
      memoryEdits: none,
      tokens: Int32Array.of(1),
      positions: Int32Array.of(0),
      sequences: Int32Array.of(0),
      sampleRows: none,
      samplers: [],
      scoreRows: none,
      mayRunAhead: false,
    };
    for (const wrong of [
      { tokens: Int32Array.of(-1) },
      { tokens: Int32Array.of(gguf.native.vocabSize) },
      { tokens: new Int32Array(9), positions: new Int32Array(9), sequences: new Int32Array(9) },
      { positions: none },
      { positions: Int32Array.of(-1) },
      { sequences: Int32Array.of(4) },
      { sampleRows: Int32Array.of(0) },
      { scoreRows: Int32Array.of(1, 0, 0) },
      { scoreRows: Int32Array.of(0, 0) },
      { adapter: -1 },
      { memoryEdits: Int32Array.of(7, 0, 0, 0, 0) },
      { memoryEdits: Int32Array.of(1, 0, 9, 0, 0) },
      { tokens: [1] as unknown as Int32Array },
      { samplers: [{}] as never, sampleRows: Int32Array.of(0) },
    ])
      expect(() => context.step({ ...fine, ...wrong }), JSON.stringify(wrong)).toThrow();
    await expect(context.step({ ...fine, adapter: 1 })).rejects.toThrow(/not loaded/);
    await context.step(fine);
    await context.close();
    await context.close();
    expect(() => context.step(fine)).toThrow(/closed/);
  });
});
