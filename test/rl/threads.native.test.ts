/** A training step on one thread and on three: how many are free on a busy machine must not change what is learned. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openTrainer } from '../../src/rl/trainer.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-training-threads-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
/** Long enough to be shared by threads. */
const row = packSequence(Int32Array.from({ length: 200 }, (_, i) => (i * 53) % 300));

describe('threads of a trainer', () => {
  it.each([
    ['qwen3', 'q8_0'],
    ['llama', 'f32'],
    ['gemma3', 'f16'],
  ] as const)('leave gradients and steps of %s in %s as they are', async (architecture, type) => {
    const model = path.join(folder, `${architecture}.gguf`);
    await writeTinyModel(model, { architecture, type });
    const learned = [];
    for (const threads of [1, 3]) {
      await using trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads, seed: 3 });
      await trainer.loadAdapter(randomAdapter(trainer, normals(11), 0.1));
      const { logprobs, entropies } = await trainer.forward(row);
      await trainer.backward(Float32Array.from(logprobs, (_, i) => Math.sin(i)));
      const gradients = trainer.gradients();
      await trainer.step({ learningRate: 1e-3 });
      learned.push({ logprobs, entropies, gradients, adapter: trainer.adapter() });
    }
    expect(learned[1]).toEqual(learned[0]);
  });
});
