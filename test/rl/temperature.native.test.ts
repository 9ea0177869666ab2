/** Rows of answers that were sampled at a temperature: log-probabilities and gradients are of the distribution that was sampled. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PackedRow } from '../../src/protocol/index.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, writeTinyModel } from './tiny-model.ts';

const VOCABULARY = 320;
const ARCHITECTURES = ['qwen3', 'gemma2'] as const; // the second one bounds its logits
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-temperature-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
const fileOf = (architecture: string) => path.join(folder, `${architecture}.gguf`);
beforeAll(async () => {
  for (const architecture of ARCHITECTURES)
    await writeTinyModel(fileOf(architecture), { architecture, type: 'f32' });
});

const sequence = packSequence(Int32Array.from({ length: 24 }, (_, i) => (i * 37) % 250));
const targets = sequence.targetTokens.length;
const temperatures = Float32Array.from({ length: targets }, (_, i) => [1, 0.5, 0.7, 2, 8][i % 5]!);
const warm: PackedRow = { ...sequence, temperatures };
const normal = normals(11);
const gradient = Float32Array.from({ length: targets }, () => normal());

/** Every token of the vocabulary as a target of every place: the whole distributions. */
const whole: PackedRow = {
  ...sequence,
  logitRows: Int32Array.from({ length: targets * VOCABULARY }, (_, i) => Math.floor(i / VOCABULARY)),
  targetTokens: Int32Array.from({ length: targets * VOCABULARY }, (_, i) => i % VOCABULARY),
};

/** The value in float64, from the distributions at temperature 1. */
async function expected(trainer: Trainer) {
  const { logprobs } = await trainer.forward(whole, { gradients: false });
  const scores = { logprobs: [] as number[], entropies: [] as number[] };
  const byLogit = new Float32Array(whole.targetTokens.length); // the loss by each of the untempered log-probabilities
  for (let t = 0; t < targets; t++) {
    const temperature = temperatures[t]!;
    const scaled = Array.from(
      logprobs.subarray(t * VOCABULARY, (t + 1) * VOCABULARY),
      (logprob) => logprob / temperature,
    );
    const sum = Math.log(scaled.reduce((total, value) => total + Math.exp(value), 0));
    const tempered = scaled.map((value) => value - sum);
    scores.logprobs.push(tempered[sequence.targetTokens[t]!]!);
    scores.entropies.push(tempered.reduce((total, value) => total - Math.exp(value) * value, 0));
    for (const [token, value] of tempered.entries())
      byLogit[t * VOCABULARY + token] =
        (gradient[t]! * (Number(token === sequence.targetTokens[t]) - Math.exp(value))) / temperature;
  }
  return { scores, gradients: await gradientsOfRow(trainer, whole, byLogit) };
}

describe.each(ARCHITECTURES)('a row with temperatures, %s', (architecture) => {
  it('has the log-probabilities, entropies and gradients of the distributions at them', async () => {
    await using trainer = await openTrainer({ model: fileOf(architecture), gpu: false });
    await trainer.loadAdapter(randomAdapter(trainer, normals(5), 0.02));
    const { scores, gradients } = await expected(trainer);
    const got = await trainer.forward(warm);
    for (let t = 0; t < targets; t++) {
      expect(got.logprobs[t]).toBeCloseTo(scores.logprobs[t]!, 4);
      expect(got.entropies[t]).toBeCloseTo(scores.entropies[t]!, 4);
    }
    const [moved] = [await gradientsOfRow(trainer, warm, gradient)];
    for (const [module, factors] of Object.entries(gradients))
      for (const factor of ['a', 'b'] as const) {
        const error = Math.hypot(...factors[factor].map((value, i) => value - moved[module]![factor][i]!));
        expect(error / Math.hypot(...factors[factor]), `${module}.${factor}`).toBeLessThan(1e-3);
      }
  });

  it('has the bits of a row without them at temperature 1', async () => {
    await using trainer = await openTrainer({ model: fileOf(architecture), gpu: false });
    const plain = await trainer.forward(sequence);
    expect(await trainer.forward({ ...sequence, temperatures: new Float32Array(targets).fill(1) })).toEqual(
      plain,
    );
  });
});

it('gives the log-probabilities that the engine samples from', async () => {
  const model = fileOf('qwen3');
  await using runtime = await createRuntime({
    model: { path: model, cacheBits: 32 },
    gpu: false,
    logprobsMode: 'processed',
  });
  const { choices } = await runtime.createTextCompletion({
    prompt: 'What is 45 - 5?',
    temperature: 0.6,
    max_tokens: 24,
    ignore_eos: true,
    logprobs: 0,
    return_token_ids: true,
    seed: 3,
  });
  const [choice] = choices;
  const prompt = choice!.prompt_token_ids!;
  const answer = choice!.token_ids!;
  const row = packSequence(Int32Array.from([...prompt, ...answer]));
  const start = prompt.length - 1;
  await using trainer = await openTrainer({ model, gpu: false });
  const { logprobs } = await trainer.forward({
    ...row,
    temperatures: new Float32Array(row.targetTokens.length).fill(0.6),
  });
  for (const [i, logprob] of choice!.logprobs!.token_logprobs.entries())
    expect(logprobs[start + i]).toBeCloseTo(logprob!, 4);
});

it.each<[string, number[]]>([
  ['expected finite numbers above 0, got 0.000000', new Array(targets).fill(0)],
  ['expected finite numbers above 0, got -1.000000', new Array(targets).fill(-1)],
  ['expected finite numbers above 0, got nan', new Array(targets).fill(Number.NaN)],
  ['temperatures and targetTokens differ in length', [1]],
])('refuses wrong ones: %s', async (message, values) => {
  await using trainer = await openTrainer({ model: fileOf('qwen3'), gpu: false });
  await expect(trainer.forward({ ...sequence, temperatures: Float32Array.from(values) })).rejects.toThrow(
    message,
  );
});
