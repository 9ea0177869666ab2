/** Types of the KV cache, rotations and ways of loading: what they change, and what they must not. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { CacheType, ChatCompletion, RopeOptions, RuntimeOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const EMBEDDED = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-cache-types-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const question = { messages: [{ role: 'user', content: 'Tell me a story about a bear and a river.' }] };
const TYPES: readonly CacheType[] = ['f32', 'f16', 'q8_0', 'q4_0'];

const open = (model: object, more: RuntimeOptions = {}): Promise<Runtime> =>
  createRuntime({ model: { path: EMBEDDED, ...model }, threads: 1, gpu: false, contextSize: 512, ...more });

async function ask(runtime: Runtime, more: object = {}): Promise<ChatCompletion> {
  return (await runtime.createCompletion({
    ...question,
    temperature: 0,
    max_tokens: 60,
    ignore_eos: true,
    return_token_ids: true,
    ...more,
    stream: false,
  })) as ChatCompletion;
}

const idsOf = (answer: ChatCompletion): readonly number[] => answer.choices[0]!.token_ids!;

/** Log-probabilities of the prompt `text`. */
async function scores(runtime: Runtime, text: string): Promise<number[]> {
  const { prompt_logprobs } = await ask(runtime, {
    messages: [{ role: 'user', content: text }],
    max_tokens: 1,
    prompt_logprobs: 0,
  });
  return prompt_logprobs!.slice(1).map((entry) => Object.values(entry!)[0]!.logprob);
}

describe('cacheType', () => {
  it('costs precision in its order', async () => {
    await using exact = await open({ cacheType: 'f32' });
    const text = 'Once upon a time a bear lived by a river. The capital of Peru is Lima. '.repeat(4);
    const expected = await scores(exact, text);
    const changes: number[] = [];
    for (const cacheType of TYPES.slice(1)) {
      await using runtime = await open({ cacheType });
      const found = await scores(runtime, text);
      changes.push(found.reduce((sum, score, i) => sum + Math.abs(score - expected[i]!), 0) / found.length);
    }
    const [f16, q8, q4] = changes as [number, number, number];
    expect(f16).toBeLessThan(0.02);
    expect(q8).toBeLessThan(0.2);
    expect(q8).toBeGreaterThan(f16);
    expect(q4).toBeLessThan(2);
    expect(q4).toBeGreaterThan(q8);
  });

  it.each(TYPES)('%s takes the memory that it should, beside others', async (cacheType) => {
    await using runtime = await open({ cacheType });
    await ask(runtime, { max_tokens: 1 });
    const { cache } = runtime.loaded()[0]!.memory!;
    const bytes = { f32: 4, f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 }[cacheType];
    expect(cache).toBe(80 * 512 * 5 * 2 * 64 * bytes); // slots, cells, layers, heads, numbers of key and value
  });

  it.each(TYPES)('%s: a cached prefix, a fork and company change no answer', async (cacheType) => {
    for (const limits of [{}, { kvTokens: 1024 }]) {
      // non-unified and unified
      await using runtime = await open({ cacheType }, limits);
      const alone = idsOf(await ask(runtime));
      const again = await ask(runtime);
      expect(again.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(10);
      expect(idsOf(again)).toEqual(alone);
      const many = await ask(runtime, { n: 3, temperature: 1, seed: 5 });
      const one = await ask(runtime, { temperature: 1, seed: 5 });
      expect(many.choices[0]!.token_ids!.slice(0, 8)).toEqual(one.choices[0]!.token_ids!.slice(0, 8));
    }
  });

  it.each(TYPES)('%s: a prompt is handed from one runtime to another', async (cacheType) => {
    await using from = await open({ cacheType }, { kvTransferFolder: folder });
    await using to = await open({ cacheType }, { kvTransferFolder: folder });
    const expected = idsOf(await ask(from));
    const prefilled = await ask(from, { kv_transfer_params: { do_remote_decode: true } });
    const answer = await ask(to, { kv_transfer_params: prefilled.kv_transfer_params });
    expect(answer.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(10);
    expect(idsOf(answer)).toEqual(expected);
  });

  it('a prompt of another type is computed again', async () => {
    await using from = await open({ cacheType: 'q8_0' }, { kvTransferFolder: folder });
    await using to = await open({ cacheType: 'f16' }, { kvTransferFolder: folder });
    const prefilled = await ask(from, { kv_transfer_params: { do_remote_decode: true } });
    const answer = ask(to, { kv_transfer_params: prefilled.kv_transfer_params });
    await expect(answer).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});

describe('rope', () => {
  it.each<[string, RopeOptions]>([
    ['the base of the file', { base: 10_000 }],
    ['no scaling', { type: 'none' }],
    ['a factor of 1', { type: 'linear', factor: 1 }],
  ])('%s changes nothing', async (_, rope) => {
    await using plain = await open({});
    await using runtime = await open({ rope });
    expect(idsOf(await ask(runtime))).toEqual(idsOf(await ask(plain)));
  });

  it.each<[string, RopeOptions]>([
    ['another base', { base: 1_000_000 }],
    ['linear', { type: 'linear', factor: 2 }],
    ['yarn', { type: 'yarn', factor: 4 }],
    [
      'yarn with all settings',
      {
        type: 'yarn',
        factor: 2,
        originalContext: 1024,
        extFactor: 1,
        attnFactor: 1.1,
        betaFast: 16,
        betaSlow: 2,
      },
    ],
  ])('%s changes log-probabilities', async (_, rope) => {
    await using plain = await open({});
    await using runtime = await open({ rope });
    const text = 'The capital of Peru is Lima.';
    const [a, b] = [await scores(plain, text), await scores(runtime, text)];
    expect(a.every((score, i) => score === b[i])).toBe(false);
    expect(b.every(Number.isFinite)).toBe(true);
  });

  it('makes the context longer', async () => {
    const long = { messages: [{ role: 'user', content: 'a story '.repeat(700) }], max_tokens: 1 };
    await using plain = await open({}, { contextSize: 4096 });
    await expect(ask(plain, long)).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
    await using runtime = await open({ rope: { type: 'yarn', factor: 4 } }, { contextSize: 4096 });
    expect((await ask(runtime, long)).usage!.prompt_tokens).toBeGreaterThan(1024);
  });
});

describe('mmap and mlock', () => {
  it.each<[string, object]>([
    ['read', { mmap: false }],
    ['mapped', { mmap: true }],
    ['locked', { mlock: true }],
    ['read and locked', { mlock: true, mmap: false }],
  ])('%s weights answer the same', async (_, model) => {
    await using plain = await open({});
    await using runtime = await open({ ...model, kernels: 'plain' });
    expect((await ask(runtime)).choices[0]!.message.content!.slice(0, 20)).toBe(
      (await ask(plain)).choices[0]!.message.content!.slice(0, 20),
    );
  });
});

describe('settings of a model that cannot be', () => {
  it.each<[string, object]>([
    ['model.cacheType: expected "f32", "f16", "q8_0" or "q4_0", got "q5_0"', { cacheType: 'q5_0' }],
    ['model.cacheBits: expected no value with cacheType, got 16', { cacheType: 'q8_0', cacheBits: 16 }],
    [
      'model.fusedAttention: expected true with cacheType q8_0, got false',
      { cacheType: 'q8_0', fusedAttention: false },
    ],
    ['model.rope.factor: expected a number > 0, got 0', { rope: { factor: 0 } }],
    [
      'model.rope.betaFast: expected no value unless rope.type is yarn, got 3',
      { rope: { type: 'linear', betaFast: 3 } },
    ],
    ['model.rope.scale: not a field of model.rope', { rope: { scale: 2 } }],
    ['model.mmap: expected true or false, got 1', { mmap: 1 }],
  ])('%s', async (message, model) => {
    await expect(open(model)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
  });
});
