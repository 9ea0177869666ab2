/** Models that the engine could not serve -> refused by name, before native code sees them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { decode, encode, setKey, words } from '../engine/gguf/files.ts';
import { architectureFiles } from './files.ts';

const DIFFUSION = ['dream', 'llada', 'llada-moe', 'rnd1'];
const NAMES = [
  'qwen3',
  'qwen2',
  'lfm2',
  'kimi-linear',
  'eagle3',
  'rwkv7',
  'qwen35-mtp',
  'plm',
  'minimax-m3',
  ...DIFFUSION,
];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-refused-'));
let files: Record<string, string>;
beforeAll(() => {
  files = architectureFiles(NAMES);
}, 60_000);
afterAll(() => fs.rmSync(folder, { recursive: true }));

const LIMITS = { gpu: false, threads: 1, contextSize: 256, maxSequences: 2 } as const;
const ask = { messages: [{ role: 'user' as const, content: 'hello' }], max_tokens: 4, temperature: 0 };

describe('a draft model', () => {
  it.each([
    ['lfm2', /speculation\.model: .* has recurrent state/],
    ['kimi-linear', /speculation\.model: .* has recurrent state/],
  ])('of %s is refused', async (name, message) => {
    const speculation = { method: 'draft' as const, model: files[name]! };
    const runtime = await createRuntime({
      ...LIMITS,
      model: files['qwen3']!,
      models: { draft: files[name]! },
    });
    const answer = runtime.createCompletion({ ...ask, speculation });
    await expect(answer).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'speculation.model',
      message: expect.stringMatching(message),
    });
    await runtime.close();
  });
});

it('a part of another model is none by itself', async () => {
  await expect(inspectModel(files['eagle3']!, { gpu: false })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('got one of eagle3'),
  });
});

it.each(DIFFUSION)('%s, which fills in a text in rounds, is refused', async (name) => {
  const error = {
    code: 'UNSUPPORTED',
    message: expect.stringContaining(`got one of ${name}, which fills in a text in rounds`),
  };
  await expect(inspectModel(files[name]!, { gpu: false })).rejects.toMatchObject(error);
  await using runtime = await createRuntime({ ...LIMITS, model: files[name]! });
  await expect(runtime.createCompletion(ask)).rejects.toMatchObject(error);
});

it('deepseek4, whose memory is not predicted, is refused', async () => {
  const parts = decode(fs.readFileSync(files['qwen3']!));
  setKey('general.architecture', 8, Buffer.from('deepseek4'))(parts);
  for (const key of parts.keys) key.name = key.name.replace(/^qwen3\./, 'deepseek4.');
  const file = path.join(folder, 'deepseek4.gguf');
  fs.writeFileSync(file, encode(parts));
  const error = {
    code: 'UNSUPPORTED',
    message: expect.stringContaining('got one of deepseek4, whose caches of several kinds'),
  };
  await expect(inspectModel(file, { gpu: false })).rejects.toMatchObject(error);
  await using runtime = await createRuntime({ ...LIMITS, model: file });
  await expect(runtime.createCompletion(ask)).rejects.toMatchObject(error);
});

it.each([
  ['plm', { fusedAttention: true }, /^model\.fusedAttention: the engine cannot fuse attention/],
  ['plm', { cacheType: 'q8_0' }, /^model\.cacheType: q8_0 needs fusedAttention: the engine cannot/],
  ['minimax-m3', { kvTokens: 511 }, /^kvTokens: expected at least 512, contextSize for each of maxSequences/],
] as const)('%s with %j is refused', async (name, options, message) => {
  await using runtime = await createRuntime({ ...LIMITS, model: { path: files[name]!, ...options } });
  await expect(runtime.createCompletion(ask)).rejects.toMatchObject({
    code: expect.stringMatching(/UNSUPPORTED|INVALID_REQUEST/),
    message: expect.stringMatching(message),
  });
});

it('heads that the kernels of the engine write behind are refused', async () => {
  const parts = decode(fs.readFileSync(files['rwkv7']!));
  setKey('rwkv7.wkv.head_size', 4, words(32))(parts);
  const file = path.join(folder, 'narrow.gguf');
  fs.writeFileSync(file, encode(parts));
  await expect(inspectModel(file, { gpu: false })).rejects.toMatchObject({
    code: 'MODEL_INVALID',
    message: expect.stringContaining('rwkv7.wkv.head_size: expected a multiple of 64, got 32'),
  });
});
