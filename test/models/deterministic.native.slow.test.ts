/** Runtimes with `deterministic`: the same bits alone, in company, by any chunks and from the cache. ONPOLICY_CASES: requests for each model. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, RuntimeOptions } from '../../src/protocol/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals, type TinyModel, writeTinyModel } from '../rl/tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-deterministic-'));
const EMBEDDED = fileURLToPath(new URL('../../models/', import.meta.url));
const CASES = Number(process.env['ONPOLICY_CASES'] ?? 6);
const [BEST] = testing.matmulKernels();

const tiny = (more: Partial<TinyModel>): TinyModel => ({
  architecture: 'qwen3',
  type: 'q8_0',
  vocabularySize: 331,
  isTied: true,
  ...more,
});
const MODELS: Record<string, TinyModel> = {
  q8_0: tiny({}),
  f16: tiny({ type: 'f16' }),
  f32: tiny({ type: 'f32' }),
  q4_K: tiny({ type: 'q4_K' }),
  q5_K: tiny({ type: 'q5_K' }),
  llama: tiny({ architecture: 'llama', headSize: 64 }),
  experts: tiny({ architecture: 'qwen3moe', experts: 4 }),
  q4_0: tiny({ type: 'q4_0' }),
};
const UNFIT: Record<string, TinyModel> = {
  q5_0: tiny({ type: 'q5_0' }),
  narrow: tiny({ headSize: 8, width: 64 }),
};
const fileOf = (name: string): string => path.join(folder, `${name}.gguf`);

beforeAll(async () => {
  for (const [name, model] of Object.entries({ ...MODELS, ...UNFIT }))
    await writeTinyModel(fileOf(name), model);
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const open = (file: string, more: RuntimeOptions = {}) =>
  createRuntime({
    model: file,
    threads: 2,
    contextSize: 512,
    maxSequences: 32,
    gpu: false,
    deterministic: true,
    ...more,
  });

const ask = (index: number, more: object = {}): ChatCompletionRequest & { stream?: false } => ({
  messages: [
    { role: 'user', content: `Question ${index}: ${'why '.repeat((index * 13) % 40)}${'how '.repeat(20)}?` },
  ],
  chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
  max_tokens: 5,
  temperature: 1,
  seed: index,
  ignore_eos: true,
  logprobs: true,
  top_logprobs: 5,
  return_token_ids: true,
  ...more,
});

/** Every number of an answer's tokens. */
const bits = ({ choices }: ChatCompletion): string =>
  JSON.stringify([choices[0]!.token_ids, choices[0]!.logprobs]);

const answers = async (runtime: Runtime, indices: readonly number[]): Promise<string[]> =>
  (await Promise.all(indices.map((i) => runtime.createCompletion(ask(i))))).map(bits);

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe.skipIf(BEST === undefined)('deterministic', () => {
  it.each([...Object.keys(MODELS), 'onpolicy-tiny.gguf'])(
    '%s: bit-equal in any company',
    async (name) => {
      const file = name in MODELS ? fileOf(name) : path.join(EMBEDDED, name);
      const expected: string[] = [];
      {
        await using runtime = await open(file, { prefixCache: false });
        for (const i of upTo(CASES)) expected.push(...(await answers(runtime, [i])));
        expect(new Set(expected).size).toBe(CASES);
        for (const company of [8, 32])
          for (let first = 0; first < CASES; first += company) {
            const beside = upTo(company).map((i) => first + i);
            const got = (await answers(runtime, beside)).slice(0, CASES - first);
            expect(got, `in company of ${company}`).toEqual(expected.slice(first, first + company));
          }
      }
      for (const maxBatchTokens of [7, 64]) {
        await using runtime = await open(file, { maxBatchTokens });
        expect(await answers(runtime, upTo(CASES)), `computed by ${maxBatchTokens} tokens`).toEqual(expected);
        expect(await answers(runtime, upTo(CASES)), 'from the cache').toEqual(expected);
      }
    },
    60_000 + 1000 * CASES,
  );

  it('also where a prompt has several spans of cells', async () => {
    const long = { messages: [{ role: 'user' as const, content: 'abcdefgh'.repeat(170) }] };
    const results: string[] = [];
    for (const maxBatchTokens of [100, 512]) {
      const limits = { maxBatchTokens, contextSize: 2048, maxSequences: 4 };
      await using runtime = await open(fileOf('q8_0'), limits);
      const others = answers(runtime, upTo(3));
      for (let i = 0; i < 2; i++) results.push(bits(await runtime.createCompletion(ask(1, long))));
      await others;
    }
    expect(new Set(results).size).toBe(1);
  });

  it.each([8, 24])('also with an adapter of rank %i', async (rank) => {
    const model = fileOf('q8_0');
    await using trainer = await openTrainer({ model, rank, gpu: false, threads: 2 });
    const normal = normals(rank);
    await trainer.loadAdapter(randomAdapter(trainer, normal, 0.02));
    const checkpoint = path.join(folder, `adapter-${rank}`);
    await trainer.save(checkpoint);
    const adapters = [{ file: path.join(checkpoint, CHECKPOINT_FILES.gguf) }];
    const adapted = async (runtime: Runtime, indices: readonly number[]): Promise<string[]> =>
      (await Promise.all(indices.map((i) => runtime.createCompletion(ask(i, { adapters }))))).map(bits);
    const expected: string[] = [];
    {
      await using runtime = await open(model, { prefixCache: false });
      for (const i of upTo(6)) expected.push(...(await adapted(runtime, [i])));
      expect(expected).not.toEqual(await answers(runtime, upTo(6)));
      for (const company of [8, 32])
        expect((await adapted(runtime, upTo(company))).slice(0, 6), `in company of ${company}`).toEqual(
          expected,
        );
    }
    await using runtime = await open(model, { maxBatchTokens: 7 });
    expect(await adapted(runtime, upTo(6)), 'computed by 7 tokens').toEqual(expected);
  });

  it.each(['q8_0', 'f16'])('%s has the same bits with one thread and with three', async (name) => {
    const results = new Set<string>();
    for (const threads of [1, 3]) {
      await using runtime = await open(fileOf(name), { threads });
      results.add(bits(await runtime.createCompletion(ask(2))));
    }
    expect(results.size).toBe(1);
  });

  it.each(['q8_0', 'q4_0', 'q4_K', 'experts'])(
    '%s is so by default, in a pool of cells: bit-equal in any company, cut, cached and drafted',
    async (name) => {
      const file = fileOf(name);
      const limits = { deterministic: false, contextSize: 512, kvTokens: 4096 } as const;
      const repeating = (i: number) => ({
        messages: [{ role: 'user' as const, content: `${i} one two `.repeat(20) }],
      });
      const all = upTo(CASES).flatMap((i) => [
        ask(i),
        ask(i, { ...repeating(i), max_tokens: 12 }),
        ask(i, { n: 3 }),
      ]);
      const run = async (runtime: Runtime) =>
        (await Promise.all(all.map((request) => runtime.createCompletion(request)))).map(({ choices }) =>
          JSON.stringify(choices.map(({ token_ids, logprobs }) => [token_ids, logprobs])),
        );
      const expected: string[] = [];
      {
        await using runtime = await open(file, { ...limits, prefixCache: false, speculation: false });
        expect(runtime.stats().kvTokens).toBe(0);
        for (const request of all) {
          const { choices } = await runtime.createCompletion({ ...request, n: 1 });
          const more = [];
          for (let i = 1; i < (request.n ?? 1); i++)
            more.push(
              ...(await runtime.createCompletion({ ...request, n: 1, seed: Number(request.seed) + i }))
                .choices,
            );
          expected.push(
            JSON.stringify([...choices, ...more].map(({ token_ids, logprobs }) => [token_ids, logprobs])),
          );
        }
        expect(runtime.stats().kvTokens).toBe(4096); // fewer than 512 for each of 32 sequences: they share them
        expect(await run(runtime), 'in company').toEqual(expected);
      }
      for (const [maxBatchTokens, maxSequences] of [
        [7, 6],
        [40, 32],
      ] as const) {
        await using runtime = await open(file, { ...limits, maxBatchTokens, maxSequences });
        expect(await run(runtime), `computed by ${maxBatchTokens} tokens`).toEqual(expected);
        expect(await run(runtime), 'from the cache').toEqual(expected);
      }
      await using runtime = await open(file, {
        ...limits,
        threads: 1,
        speculation: { method: 'ngram', maxTokens: 4, minMatch: 1 },
      });
      expect(await run(runtime), 'drafted').toEqual(expected);
    },
    60_000 + 1000 * CASES,
  );

  it('has other bits in company without it', async () => {
    const model = { path: fileOf('f16'), kernels: 'plain' } as const;
    await using runtime = await open('', { model, deterministic: false });
    const alone = await runtime.createCompletion(ask(1));
    const beside = await Promise.all(upTo(8).map((i) => runtime.createCompletion(ask(i))));
    expect(bits(beside[1]!)).not.toBe(bits(alone));
  });

  it('drafts change nothing', async () => {
    const repeating = 'one two three '.repeat(12);
    let drafted = 0;
    const texts = async (speculation: NonNullable<RuntimeOptions['speculation']>): Promise<string[]> => {
      await using runtime = await open(fileOf('q8_0'), { speculation });
      const runs = upTo(60).map((i) =>
        runtime.createCompletion(
          ask(i, { messages: [{ role: 'user', content: repeating }], max_tokens: 16 }),
        ),
      );
      const done = await Promise.all(runs);
      for (const { usage } of done)
        drafted += usage!.completion_tokens_details!.accepted_prediction_tokens ?? 0;
      return done.map(bits);
    };
    expect(await texts({ method: 'ngram', maxTokens: 4, minMatch: 1 })).toEqual(await texts(false));
    expect(drafted).toBeGreaterThan(0);
  });

  it.each<[string, string, RuntimeOptions, string]>([
    ['q8_0', 'kernels', { model: { path: '', kernels: 'plain' } }, 'model.kernels: expected auto with'],
    [
      'q8_0',
      'their former name',
      { model: { path: '', products: 'plain' } },
      'model.kernels: expected auto with',
    ],
    [
      'q8_0',
      'cacheType',
      { model: { path: '', cacheType: 'q4_0' } },
      'model.cacheType: expected f16 or q8_0 or f32',
    ],
    [
      'q8_0',
      'attention',
      { model: { path: '', fusedAttention: false } },
      'model.fusedAttention: expected true',
    ],
    ['q8_0', 'kvTokens', { kvTokens: 600 }, 'kvTokens: expected at least'],
    ['q5_0', 'a type', {}, 'MUL_MAT of blk.0.attn_q.weight (q5_0)'],
    ['narrow', 'heads', {}, 'FLASH_ATTN_EXT of'],
  ])('refuses by name: %s, %s', async (name, _, options, message) => {
    const model = typeof options.model === 'object' ? { ...options.model, path: fileOf(name) } : fileOf(name);
    await expect(
      (async () => {
        await using runtime = await open(fileOf(name), { ...options, model });
        await answers(runtime, [0]);
      })(),
    ).rejects.toMatchObject({ message: expect.stringContaining(message) });
  });
});
