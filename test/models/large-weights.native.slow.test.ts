/** Weights of many megabytes, whose memory the system gives while the vocabulary is read -> answers as those of the engine's own kernels. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ChatCompletion, createRuntime, type ModelOptions } from '../../src/index.ts';
import { loadGguf } from '../../src/models/formats/gguf.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-large-'));
const model = path.join(folder, 'large.gguf');
const SHAPE = { hidden: 512, layers: 6, heads: 8, feedForward: 4096, contextLength: 512 };

beforeAll(async () => {
  const { writeWideModel } = await import(
    new URL('../../bench/request/wide-model.mjs', import.meta.url).href
  );
  writeWideModel(model, { vocabSize: 20_000, ...SHAPE });
  expect(fs.statSync(model).size).toBeGreaterThan(80 * 2 ** 20);
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function answer(options: Omit<ModelOptions, 'path'>): Promise<ChatCompletion> {
  await using runtime = await createRuntime({ model: { path: model, ...options }, gpu: false });
  return await runtime.createCompletion({
    messages: [{ role: 'user', content: 'Who goes there?' }],
    max_tokens: 8,
    temperature: 0,
    ignore_eos: true,
    logprobs: true,
  });
}

it('answers as with plain kernels, again after loading was given up', { timeout: 60_000 }, async () => {
  const contentOf = ({ choices }: ChatCompletion) => choices[0]!.logprobs!.content!;
  const plain = contentOf(await answer({ kernels: 'plain' }));
  for (let round = 0; round < 3; round++) {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20 * round);
    const loading = loadGguf({ path: model, gpu: false, signal: stop.signal });
    const aborted = await loading.then(
      (loaded) => loaded.close(),
      (error: unknown) => error,
    );
    if (aborted) expect(aborted).toMatchObject({ code: 'ABORTED' });
    const found = contentOf(await answer({}));
    expect(found.map(({ token }) => token)).toEqual(plain.map(({ token }) => token));
    for (const [i, { logprob }] of found.entries()) expect(logprob).toBeCloseTo(plain[i]!.logprob, 2);
  }
});
