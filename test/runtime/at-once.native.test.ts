/**
 * Work that runs at the same time in one process gives the answers that each request has alone. `npm run check:sanitize` runs it with
 * ThreadSanitizer, which reports memory that threads use without an order.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../src/errors.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { COUNT, type Fields, request, STORY } from '../answer/asking.ts';
import { gradientsOfRow } from '../rl/gradients-of-row.ts';
import { packSequence, writeTinyModel } from '../rl/tiny-model.ts';

const OPTIONS = { gpu: false, threads: 2, contextSize: 512, maxSequences: 8 } as const;
const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 8 }, ages: { type: 'array', items: { type: 'integer' } } },
  required: ['name', 'ages'],
} as const;
/** Requests of every kind of work: samplers of several rows, sorted ones, drafts, masks, log-probabilities. */
const REQUESTS: readonly Fields[] = [
  { max_tokens: 24 },
  { max_tokens: 16, n: 4, temperature: 1, seed: 5, top_p: 0.9 },
  { max_tokens: 16, temperature: 1, seed: 6, logprobs: true, top_logprobs: 3, min_p: 0.05 },
  { max_tokens: 24, speculation: { method: 'ngram', minMatch: 1 } },
  { max_tokens: 24, structured_outputs: { json: SCHEMA } },
  { max_tokens: 24, structured_outputs: { json: SCHEMA }, temperature: 1, seed: 7, n: 2 },
] as Fields[];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-at-once-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** The texts of all requests, so many times over, at once. */
async function textsOf(runtime: Runtime, times = 1): Promise<(string | null)[][]> {
  const asked = Array.from({ length: times }, () => REQUESTS).flat();
  const answers = await Promise.all(
    asked.map((fields, i) =>
      runtime.createCompletion({ ...request(i % 2 ? STORY : COUNT, fields), stream: false }),
    ),
  );
  return answers.map(({ choices }) => choices.map(({ message }) => message.content));
}

/** Requests that leave after some milliseconds, while others run. */
async function leave(runtime: Runtime, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const leaving = new AbortController();
      setTimeout(() => leaving.abort(), 3 * i);
      const fields = { ...REQUESTS[i % REQUESTS.length]!, max_tokens: 200, ignore_eos: true };
      await expect(
        runtime.createCompletion({ ...request(STORY, fields), stream: false }, { signal: leaving.signal }),
      ).rejects.toMatchObject({ code: 'ABORTED' });
    }),
  );
}

let alone: (string | null)[][];
beforeAll(async () => {
  await using runtime = await createRuntime(OPTIONS);
  alone = [];
  for (const [i, fields] of REQUESTS.entries()) {
    const { choices } = await runtime.createCompletion({
      ...request(i % 2 ? STORY : COUNT, fields),
      stream: false,
    });
    alone.push(choices.map(({ message }) => message.content));
  }
});

describe('at once', () => {
  it('requests of every kind, and others that leave', async () => {
    await using runtime = await createRuntime(OPTIONS);
    const [texts] = await Promise.all([textsOf(runtime, 2), leave(runtime, 8)]);
    expect(texts).toEqual([...alone, ...alone]);
  });

  it('two runtimes, of which one is closed during steps of both', async () => {
    await using stays = await createRuntime(OPTIONS);
    for (let time = 0; time < 3; time++) {
      const goes = await createRuntime(OPTIONS);
      const cut = Promise.allSettled([textsOf(goes), leave(goes, 4)]);
      const texts = textsOf(stays);
      await new Promise((resolve) => setTimeout(resolve, 10 * time));
      await goes.close();
      await cut;
      expect(await texts).toEqual(alone);
    }
  });

  it('answers and the gradients of a trainer', async () => {
    const model = path.join(folder, 'trained.gguf');
    await writeTinyModel(model, { architecture: 'qwen3', type: 'q8_0' });
    const row = packSequence(Int32Array.from({ length: 80 }, (_, i) => (i * 53) % 300));
    const weights = new Float32Array(79).fill(1 / 79);
    await using runtime = await createRuntime(OPTIONS);
    await using trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 2, seed: 3 });
    const expected = await gradientsOfRow(trainer, row, weights);
    let isAnswered = false;
    const texts = textsOf(runtime, 2).finally(() => {
      isAnswered = true;
    });
    do expect(await gradientsOfRow(trainer, row, weights)).toEqual(expected);
    while (!isAnswered);
    expect(await texts).toEqual([...alone, ...alone]);
  });

  it('gradients of a trainer that is closed meanwhile', async () => {
    const model = path.join(folder, 'closed.gguf');
    await writeTinyModel(model, { architecture: 'qwen3', type: 'q8_0' });
    const row = packSequence(Int32Array.from({ length: 80 }, (_, i) => (i * 53) % 300));
    for (let time = 0; time < 4; time++) {
      const trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 2, seed: 3 });
      const cut = gradientsOfRow(trainer, row, new Float32Array(79)).then(
        () => 'done',
        ({ code }: OnpolicyError) => code,
      );
      await new Promise((resolve) => setTimeout(resolve, 2 * time));
      await Promise.all([trainer.close(), trainer.close()]);
      expect(['ABORTED', 'CLOSED', 'done']).toContain(await cut);
    }
  });
});
