/** Rows of training -> the memory that they take: as foretold, and within a budget. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openTrainer } from '../../src/rl/trainer.ts';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { architectureFiles } from '../architectures/files.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, sharedPromptRow as row, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-training-memory-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const normal = normals(3);
const gradLogprobs = Float32Array.from({ length: 32 }, () => normal() / 32);

describe('a memory budget', () => {
  it('changes nothing but the memory', async () => {
    const model = path.join(folder, 'budget.gguf');
    await writeTinyModel(model, { architecture: 'llama', type: 'q8_0', layers: 3, isTied: true });
    await using free = await openTrainer({ model, gpu: false, threads: 1 });
    await using small = await openTrainer({ model, gpu: false, threads: 1, memoryBudget: 1 });
    const refusal = await small.checkMemory(row).catch((error: Error) => error);
    expect(refusal).toMatchObject({
      code: 'OUT_OF_MEMORY',
      message: expect.stringMatching(
        /^memoryBudget: a row of \d+ tokens needs \d+ MiB beside the weights; no row fits into the 1 MiB$/,
      ),
    });
    await expect(small.forward(row)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
    const memoryBudget = 2 ** 20 * Number(/needs (\d+)/.exec((refusal as Error).message)![1]);
    await using tight = await openTrainer({ model, gpu: false, threads: 1, memoryBudget });
    await tight.checkMemory(row);
    const weights = randomAdapter(free, normal, 0.02);
    await free.loadAdapter(weights);
    await tight.loadAdapter(weights);
    const expected = await gradientsOfRow(free, row, gradLogprobs);
    expect(await gradientsOfRow(tight, row, gradLogprobs)).toEqual(expected);
    expect(free.memory().keptLayers).toBe(3);
    expect(tight.memory().keptLayers).toBeLessThan(3);
    expect(tight.memory().bytes).toBeLessThan(free.memory().bytes);
    expect(tight.memory().bytes).toBeLessThanOrEqual(memoryBudget);
  });
});

describe('the memory that a row is said to take', () => {
  it.each(['qwen3', 'qwen35', 'qwen3next', 'lfm2', 'gpt-oss', 'gemma3n-short', 'gemma4', 'gemma4-moe'])(
    '%s: within 5 percent',
    async (name) => {
      const model = architectureFiles([name], 'q8_0')[name]!;
      const size = 384;
      const { training } = await inspectModel(model, { gpu: false, trainingTokens: size });
      const memoryBudget = training.bytes!;
      await using trainer = await openTrainer({ model, gpu: false, threads: 1, memoryBudget });
      const long = packSequence(Int32Array.from({ length: size }, (_, i) => (i * 37) % 250));
      await gradientsOfRow(trainer, long, new Float32Array(size - 1).fill(1 / size));
      const { bytes, keptLayers } = trainer.memory();
      expect(keptLayers).toBe(0);
      expect(bytes).toBeLessThanOrEqual(memoryBudget);
      expect(bytes).toBeGreaterThan(0.95 * memoryBudget);
    },
  );
});
