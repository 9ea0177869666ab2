/** A model at the hub -> what is told of it before it is downloaded, and which of several is. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { type ModelHub, openModelHub } from '../fakes/model-hub.ts';

const MODELS = path.resolve(import.meta.dirname, '../../models');
const LIMITS = { contextSize: 64, maxSequences: 1, gpu: false } as const;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-remote-'));
let hub: ModelHub;
let options: { readonly hub: { readonly endpoint: string; readonly folder: string } };

beforeAll(async () => {
  const tiny = fs.readFileSync(path.join(MODELS, 'onpolicy-tiny.gguf'));
  const seeing = (name: string): Buffer => fs.readFileSync(path.join(MODELS, 'seeing', name));
  hub = await openModelHub({
    'o/tiny': {
      'tiny-Q8_0.gguf': tiny,
      'tiny-F16.gguf': Buffer.concat([tiny, Buffer.alloc(1000)]),
      'tiny-F32.gguf': Buffer.concat([tiny, Buffer.alloc(2000)]),
      'broken-Q4_0.gguf': Buffer.from('no model'),
    },
    'o/seeing': {
      'seeing-Q8_0.gguf': seeing('onpolicy-seeing.gguf'),
      'mmproj-seeing.gguf': seeing('mmproj-onpolicy-seeing.gguf'),
    },
  });
  options = { hub: { endpoint: hub.endpoint, folder } };
});
afterAll(() => {
  hub.close();
  fs.rmSync(folder, { recursive: true });
});
beforeEach(() => {
  hub.asked.length = 0;
});

it('is inspected by its header, as the file here is', async () => {
  const { path: uri, fit, ...remote } = await inspectModel('hf:o/tiny:Q8_0', { ...LIMITS, ...options });
  const local = await inspectModel(path.join(MODELS, 'onpolicy-tiny.gguf'), LIMITS);
  expect({ ...local, ...remote }).toEqual(local);
  expect(uri).toBe('hf:o/tiny/tiny-Q8_0.gguf');
  expect(fit.verdict).toBe('memory');
  expect(fs.readdirSync(folder)).toEqual([]);
  expect(hub.asked.every(({ url, range }) => !url.includes('/resolve/') || range !== undefined)).toBe(true);
});

it('counts its projector', async () => {
  const { memory } = await inspectModel('hf:o/seeing:Q8_0', { ...LIMITS, ...options });
  const local = await inspectModel(path.join(MODELS, 'seeing', 'onpolicy-seeing.gguf'), LIMITS);
  expect(memory).toEqual(local.memory);
});

it.each([
  ['hf:o/tiny:Q2_K', 'MODEL_NOT_FOUND', /the repository has F16, F32, Q4_0, Q8_0/],
  ['hf:o/none:Q8_0', 'MODEL_NOT_FOUND', /no repository o\/none/],
  ['hf:o/tiny/none.gguf', 'MODEL_NOT_FOUND', /no file/],
  ['hf:o/tiny:Q4_0', 'MODEL_INVALID', /is not a GGUF file/],
])('%s is %s', async (uri, code, message) => {
  await expect(inspectModel(uri, { ...LIMITS, ...options })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});

it('is the largest that fits where the URI names no type, and says so', async () => {
  hub.faults.claims = { 'tiny-F32.gguf': 2 ** 45, 'broken-Q4_0.gguf': 2 ** 45 };
  const lines: string[] = [];
  await using runtime = await createRuntime({
    ...LIMITS,
    ...options,
    threads: 1,
    model: 'hf:o/tiny',
    log: (level, text) => void (level === 'info' && lines.push(text)),
  });
  const messages = [{ role: 'user' as const, content: 'What is the capital of Peru?' }];
  const answer = await runtime.createCompletion({ messages, temperature: 0 });
  expect(answer.choices[0]!.message.content).toBe('The capital of Peru is Lima.');
  expect(lines.find((line) => line.includes('the largest'))).toMatch(
    /^hf:o\/tiny\/tiny-F16\.gguf: the largest of 4 that fits: [\d.]+ GiB of [\d.]+ GiB/,
  );
  expect((await runtime.downloads.list()).map(({ model }) => model)).toEqual(['hf:o/tiny/tiny-F16.gguf']);
});

it('is none where none fits', async () => {
  hub.faults.claims = Object.fromEntries(
    ['tiny-Q8_0.gguf', 'tiny-F16.gguf', 'tiny-F32.gguf', 'broken-Q4_0.gguf'].map((name) => [name, 2 ** 45]),
  );
  fs.rmSync(path.join(folder, 'o'), { recursive: true });
  await using runtime = await createRuntime({ ...LIMITS, ...options, threads: 1 });
  await expect(runtime.download('hf:o/tiny:auto')).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
});
