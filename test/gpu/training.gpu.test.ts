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

/** Largest difference, relative to the largest value. */
function distance(found: Float32Array, wanted: Float32Array): number {
  return largestDistance(found, wanted) / largestDistance(wanted, new Float32Array(wanted.length));
}

async function pass(model: string, gpu: 'vulkan' | false) {
  await using trainer = await openTrainer({ model, gpu, threads: 1 });
  const { logprobs } = await trainer.forward(sharedPromptRow);
  await trainer.backward(logprobs.map(() => -1));
  const gradients = trainer.gradients();
  const { gradNorm, isApplied } = await trainer.step({ learningRate: 1e-3 });
  const after = await trainer.forward(sharedPromptRow, { gradients: false });
  return { logprobs, gradients, gradNorm, isApplied, after: after.logprobs };
}

describe.skipIf(why)(`training on a GPU${because}`, () => {
  // With weights of 16 bits the CPU rounds what it multiplies with them to 16 bits (F16 forward, BF16 back); in F32 it rounds nothing.
  it.each<readonly [string, 'f32' | 'f16', number, number]>([
    ['in F32', 'f32', 5e-4, 2e-3],
    ['in F16', 'f16', 1e-3, 2e-2],
  ])(
    'has the log-probabilities, gradients and steps of the CPU, %s',
    async (_, type, ofLogprobs, ofGradients) => {
      const model = path.join(folder, `${type}.gguf`);
      await using runtime = await createRuntime({ gpu: false });
      await runtime.models.export({ model: EMBEDDED, to: model, type });
      const found = await pass(model, 'vulkan');
      const wanted = await pass(model, false);
      for (const name of ['logprobs', 'after'] as const)
        expect(distance(found[name], wanted[name]), name).toBeLessThan(ofLogprobs);
      for (const [name, { b }] of Object.entries(wanted.gradients))
        expect(distance(found.gradients[name]!.b, b), name).toBeLessThan(ofGradients);
      expect(found.isApplied).toBe(true);
      expect(found.gradNorm / wanted.gradNorm).toBeCloseTo(1, 3);
    },
  );

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
