import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { ask, EMBEDDED } from '../answer/models.ts';
import { sharedPromptRow } from '../rl/tiny-model.ts';
import { largestDistance, whyNoDevice } from './device.ts';

const why = await whyNoDevice();
const because = why ? ` (skipped: ${why})` : '';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-gpu-training-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Largest difference, relative to the largest value: the device multiplies in 16 bits. */
function distance(found: Float32Array, wanted: Float32Array): number {
  return largestDistance(found, wanted) / largestDistance(wanted, new Float32Array(wanted.length));
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function pass(gpu: 'vulkan' | false) {
  await using trainer = await openTrainer({ model: EMBEDDED, gpu, threads: 1 });
  const { logprobs } = await trainer.forward(sharedPromptRow);
  await trainer.backward(logprobs.map(() => -1));
  const gradients = trainer.gradients();
  const { gradNorm, isApplied } = await trainer.step({ learningRate: 1e-3 });
  const after = await trainer.forward(sharedPromptRow, { gradients: false });
  return { logprobs, gradients, gradNorm, isApplied, after: after.logprobs };
}

describe.skipIf(why)(`training on a GPU${because}`, () => {
  it('has the log-probabilities, gradients and steps of the CPU', async () => {
    const found = await pass('vulkan');
    const wanted = await pass(false);
    for (const name of ['logprobs', 'after'] as const) {
      expect(distance(found[name], wanted[name]), name).toBeLessThan(5e-3);
      expect(Math.abs(mean(found[name]) - mean(wanted[name])), name).toBeLessThan(5e-3);
    }
    for (const [name, { b }] of Object.entries(wanted.gradients))
      expect(distance(found.gradients[name]!.b, b), name).toBeLessThan(5e-2);
    expect(found.isApplied).toBe(true);
    expect(found.gradNorm / wanted.gradNorm).toBeCloseTo(1, 2);
  });

  it('makes a checkpoint that answers with what was learned, on either device', async () => {
    const home = path.join(folder, 'home');
    const request = ask('What is the capital of Peru?', { max_tokens: 8, logprobs: true });
    await using runtime = await createRuntime({ gpu: 'vulkan', home });
    const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });
    const messages = [
      { role: 'user', content: 'What is the capital of Peru?' },
      { role: 'assistant', content: 'It is a secret.' },
    ];
    const job = await runtime.sft({ model_id: model.id, data: [{ messages }] });
    const { step, metrics } = await job.done;
    expect(step).toBeGreaterThan(0);
    expect(metrics!['train/skipped_steps']).toBe(0);
    const tuned = await runtime.createCompletion({ ...request, model: model.id });
    await using cpu = await createRuntime({ gpu: false, home });
    const same = await cpu.createCompletion({ ...request, model: model.id });
    const base = await runtime.createCompletion(request);
    const numbers = ({ choices }: typeof tuned) =>
      choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
    expect(numbers(tuned)).not.toEqual(numbers(base));
    expect(largestDistance(numbers(tuned), numbers(same))).toBeLessThan(2e-3);
  });
});
