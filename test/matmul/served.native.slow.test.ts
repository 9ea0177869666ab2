/** Models with packed weights beside the same ones computed by the engine alone. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, RuntimeOptions } from '../../src/protocol/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';
import { FORMATS } from './formats.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-matmuls-'));
const fileOf = (type: string): string => path.join(folder, `${type}.gguf`);
const TYPES = Object.keys(FORMATS).map((name) => name.replace('_k', '_K'));
const [BEST = 'plain'] = testing.matmulKernels();

beforeAll(async () => {
  for (const type of [...TYPES, 'q5_0'])
    await writeTinyModel(fileOf(type), { architecture: 'qwen3', type, vocabularySize: 331, isTied: true });
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const isFloat = (type: string): boolean => /^b?f\d+$/.test(type);

const open = (type: string, kernels: 'auto' | 'batch' | 'plain' = 'auto', more: RuntimeOptions = {}) =>
  createRuntime({
    model: { path: fileOf(type), kernels },
    threads: 2,
    contextSize: 512,
    gpu: false,
    ...more,
  });

const ask = (index: number, more: object = {}): ChatCompletionRequest & { stream?: false } => ({
  messages: [{ role: 'user', content: `Question ${index}: ${'why '.repeat(index % 7)}?` }],
  chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
  max_tokens: 12,
  temperature: 0,
  ignore_eos: true,
  logprobs: true,
  top_logprobs: 2,
  return_token_ids: true,
  ...more,
});

const answers = (runtime: Runtime, count: number, more: object = {}): Promise<ChatCompletion[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => runtime.createCompletion(ask(i, more))));

const kernelsOf = (runtime: Runtime) => runtime.stats().kernels.map(({ kernels }) => kernels);

/** Compares answers token by token, up to where a near tie goes the other way. */
function expectSame(
  ours: readonly ChatCompletion[],
  theirs: readonly ChatCompletion[],
  within: number,
): void {
  for (const [i, { choices }] of ours.entries())
    for (const [at, entry] of choices[0]!.logprobs!.content!.entries()) {
      const other = theirs[i]!.choices[0]!.logprobs!.content![at]!;
      if (choices[0]!.token_ids![at] !== theirs[i]!.choices[0]!.token_ids![at]) {
        const [first, second] = other.top_logprobs;
        expect(first!.logprob - second!.logprob, `answer ${i}, token ${at}`).toBeLessThan(2 * within);
        break;
      }
      expect(Math.abs(entry.logprob - other.logprob), `answer ${i}, token ${at}`).toBeLessThan(within);
    }
}

describe.skipIf(BEST === 'plain')('packed weights', () => {
  it.each(TYPES)('%s answers as the engine does, alone and in company', async (type) => {
    await using ours = await open(type);
    await using plain = await open(type, 'plain');
    expect([kernelsOf(ours), kernelsOf(plain)]).toEqual([[], []]); // models load on demand
    const [first] = await answers(ours, 1);
    const expected = await answers(plain, 16);
    const got = await answers(ours, 16);
    // ggml rounds activations for types of K in blocks of 256 instead of 32.
    const within = isFloat(type) ? 0.01 : type.endsWith('_0') ? 0.05 : 0.3;
    expectSame([first!], expected, within);
    expectSame(got, expected, within);
    expect(kernelsOf(ours)).toEqual([BEST]);
    expect(kernelsOf(plain)).toEqual(['plain']);
  });

  it.each(['q8_0', 'q4_K'])('%s shifts a full context as the engine does', async (type) => {
    const shifting = { context_shift: true, max_tokens: 70 };
    const small = { contextSize: 64, threads: 1 };
    await using ours = await open(type, 'auto', small);
    await using plain = await open(type, 'plain', small);
    const [got, expected] = [await answers(ours, 1, shifting), await answers(plain, 1, shifting)];
    expectSame(got, expected, type === 'q8_0' ? 0.05 : 0.3);
    expect(got[0]!.choices[0]!.token_ids).toHaveLength(70);
  });

  it.each(['q8_0', 'q4_K'])('%s with an adapter beside it answers as in the engine', async (type) => {
    const adapter = path.join(folder, `${type}-adapter`);
    {
      await using trainer = await openTrainer({ model: fileOf(type), rank: 4, gpu: false, threads: 2 });
      const factors = Object.entries(trainer.adapter());
      const trained = factors.map(([module, { a, b }]) => [
        module,
        { a, b: b.map((_, i) => 0.05 * Math.sin(i)) },
      ]);
      await trainer.loadAdapter(Object.fromEntries(trained));
      await trainer.save(adapter);
    }
    const adapters = [{ file: path.join(adapter, CHECKPOINT_FILES.gguf) }];
    const openWith = (kernels: 'auto' | 'plain') =>
      open(type, kernels, { model: { path: fileOf(type), kernels, adapters } });
    await using ours = await openWith('auto');
    await using plain = await openWith('plain');
    const [got, expected] = [await answers(ours, 4), await answers(plain, 4)];
    expectSame(got, expected, type === 'q8_0' ? 0.05 : 0.3);
    expect(kernelsOf(ours)).toEqual([BEST]);
  });

  it.each(TYPES)('%s with experts answers as in the engine, alone and in company', async (type) => {
    const path = fileOf(`experts-${type}`);
    await writeTinyModel(path, { architecture: 'qwen3moe', type, vocabularySize: 331, experts: 4 });
    const openWith = (kernels: 'auto' | 'plain') => open(type, kernels, { model: { path, kernels } });
    await using ours = await openWith('auto');
    await using plain = await openWith('plain');
    // A router that nearly ties takes other experts: then only the other answers are close.
    const firsts = (all: readonly ChatCompletion[]) =>
      all.map(({ choices }) => choices[0]!.logprobs!.content![0]!.logprob);
    const expected = firsts(await answers(plain, 16));
    for (const got of [await answers(ours, 1), await answers(ours, 16)]) {
      const errors = firsts(got).map((logprob, i) => Math.abs(logprob - expected[i]!));
      errors.sort((a, b) => a - b);
      expect(errors[Math.floor(errors.length / 2)]).toBeLessThan(
        isFloat(type) ? 0.01 : type.endsWith('_0') ? 0.1 : 0.5,
      );
    }
    expect(kernelsOf(ours)).toEqual([BEST]);
  });

  it.each(['q8_0', 'q4_K'])('%s gives the embeddings of the engine', async (type) => {
    const path = fileOf(`vectors-${type}`);
    await writeTinyModel(path, { architecture: 'qwen3', type, vocabularySize: 331, pooling: 3 });
    const embed = async (kernels: 'auto' | 'plain') => {
      await using runtime = await open(type, kernels, { model: { path, kernels } });
      const { data } = await runtime.createEmbeddings({ input: ['hello', 'a longer text of some words'] });
      return data.map(({ embedding }) => embedding);
    };
    const [ours, plain] = [await embed('auto'), await embed('plain')];
    for (const [i, vector] of ours.entries()) {
      const cosine = vector.reduce((sum, value, at) => sum + value * plain[i]![at]!, 0); // their length is 1
      expect(cosine).toBeGreaterThan(type === 'q8_0' ? 0.999 : 0.99);
    }
  });

  it('several models, packed, plain and of other types, run at once', async () => {
    const models = {
      packed: { path: fileOf('q8_0') },
      plain: { path: fileOf('q8_0'), kernels: 'plain' },
      other: { path: fileOf('q5_0') },
    } as const;
    await using runtime = await createRuntime({ models, threads: 2, contextSize: 512, gpu: false });
    const runs = await Promise.all(Object.keys(models).map((model) => answers(runtime, 6, { model })));
    expect(kernelsOf(runtime).sort()).toEqual([BEST, 'plain', 'plain'].sort());
    expectSame(runs[0]!, runs[1]!, 0.05);
  });

  it('an aborted answer leaves the others right', async () => {
    await using runtime = await open('q8_0');
    const [expected] = await answers(runtime, 1);
    const stop = new AbortController();
    const aborted = runtime.createCompletion(ask(3, { max_tokens: 400 }), { signal: stop.signal });
    await expect.poll(() => runtime.stats().running, { interval: 1 }).toBe(1);
    const others = answers(runtime, 8);
    stop.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    expect((await others)[0]!.choices[0]!.message.content).toBe(expected!.choices[0]!.message.content);
  });

  it.runIf(process.platform === 'linux')('gives the mapped file of packed weights back', async () => {
    const file = fileOf('mapped');
    await writeTinyModel(file, {
      architecture: 'qwen3',
      type: 'q8_0',
      vocabularySize: 331,
      width: 512,
      hidden: 2048,
    });
    const resident = async (kernels: 'auto' | 'plain') => {
      await using runtime = await open('mapped', kernels);
      await answers(runtime, 1);
      const [, map] = fs.readFileSync('/proc/self/smaps', 'utf8').split(`${file}\n`);
      return (Number(/Rss: +(\d+) kB/.exec(map!)![1]) * 1024) / fs.statSync(file).size;
    };
    expect(await resident('plain')).toBeGreaterThan(0.9);
    expect(await resident('auto')).toBeLessThan(0.5); // embeddings are read from it
  });

  it('falls back to the engine where the copy does not fit into memory', async () => {
    const available = vi.spyOn(process, 'availableMemory').mockReturnValue(50 * 2 ** 20); // cache and buffers take 46
    await using runtime = await open('q8_0');
    await answers(runtime, 1);
    expect(kernelsOf(runtime)).toEqual(['plain']);
    available.mockRestore();
  });

  it.each(['q4_K', 'f16', 'bf16', 'f32'])('packs %s, also by the former name of `auto`', async (type) => {
    for (const kernels of ['auto', 'batch'] as const) {
      await using runtime = await open(type, kernels);
      await answers(runtime, 1);
      expect(kernelsOf(runtime)).toEqual([BEST]);
    }
  });

  it('leaves types without kernels to the engine', async () => {
    await using runtime = await open('q5_0');
    await answers(runtime, 1);
    expect(kernelsOf(runtime)).toEqual(['plain']);
  });

  it('loads and runs in worker threads too', async () => {
    const addon = path.resolve(import.meta.dirname, '../../native/build/Release/onpolicy.node');
    const load = `
      const { parentPort, workerData } = require('node:worker_threads');
      const addon = require(workerData.addon);
      addon
        .loadModel({ path: workerData.model, useGpu: false, packs: true, cancelled: new Int32Array(1) })
        .then(({ kernels }) => parentPort.postMessage(kernels));`;
    await using runtime = await open('q8_0');
    await answers(runtime, 1);
    const kernels = [1, 2, 3].map(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker(load, { eval: true, workerData: { addon, model: fileOf('q8_0') } });
          worker.once('message', resolve).once('error', reject);
        }),
    );
    expect(await Promise.all([...kernels, answers(runtime, 4)]).then((all) => all.slice(0, 3))).toEqual([
      BEST,
      BEST,
      BEST,
    ]);
  });

  it('refuses another value by name', async () => {
    await expect(createRuntime({ model: { path: 'x', kernels: 'fast' as 'auto' } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('model.kernels: expected "auto", "batch" or "plain", got "fast"'),
    });
  });
});
