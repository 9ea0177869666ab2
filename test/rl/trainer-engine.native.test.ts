import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { quantize, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';
import { openGolden, readGolden } from './golden.ts';
import { packSequence } from './tiny-model.ts';

const made = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-q8-'));
afterAll(() => fs.rmSync(made, { recursive: true }));
const why = whyNoBareEngine();
const because = why ? ` (${why})` : '';

const QUESTIONS = [
  'Tell me a story about a dog.',
  'Tell me a story about a cat.',
  'What is 12 + 7?',
  'What is the capital of France?',
  'Who are you?',
];

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Distances of log-probabilities, the smallest first. */
function distances(left: readonly number[], right: readonly number[]): number[] {
  expect(left.length).toBe(right.length);
  return left.map((value, i) => Math.abs(value - right[i]!)).sort((a, b) => a - b);
}

/** Correlation of the probabilities of two lists of log-probabilities. */
function correlation(left: readonly number[], right: readonly number[]): number {
  const centered = (list: readonly number[]) => {
    const values = list.map(Math.exp);
    const middle = mean(values);
    return values.map((value) => value - middle);
  };
  const [a, b] = [centered(left), centered(right)];
  return (
    mean(a.map((value, i) => value * b[i]!)) /
    Math.sqrt(mean(a.map((v) => v * v)) * mean(b.map((v) => v * v)))
  );
}

async function scores(trainer: Trainer, tokens: Int32Array): Promise<number[]> {
  const { logprobs } = await trainer.forward(packSequence(tokens), { gradients: false });
  return [...logprobs];
}

// With 8-bit weights activations are rounded to 8 bits, too: a difference in the last bit of a sum can tip one of them to the
// next step, which shows in the tokens after it, and most in models of random weights. Else both agree to the bit.
describe.each(['train-llama', 'train-qwen2', 'train-qwen3'])(
  'a trained adapter on random weights, %s in Q8_0',
  (name) => {
    it.skipIf(why)(`has the engine's log-probabilities in the trainer${because}`, async () => {
      const golden = readGolden(name);
      const folder = path.join(made, name);
      fs.mkdirSync(folder);
      const model = path.join(folder, 'model.gguf');
      quantize(golden.model, model);
      await using trainer = await openGolden(golden, model);
      await trainer.loadAdapter(golden.weights('final'));
      await trainer.save(folder);
      const adapter = path.join(folder, CHECKPOINT_FILES.gguf);
      const trained: number[] = [];
      const served: number[] = [];
      for (let turn = 0; turn < 16; turn++) {
        const { tokens } = golden.row;
        const turned = tokens.map((_, i) => tokens[(i + turn) % tokens.length]!);
        trained.push(...(await scores(trainer, turned)));
        served.push(...(await engineScores(model, turned, adapter)));
      }
      const apart = distances(trained, served);
      expect(apart[apart.length >> 1]).toBeLessThan(1e-6);
      expect(mean(apart)).toBeLessThan(2e-2);
      expect(correlation(trained, served)).toBeGreaterThan(0.99);
    });
  },
);

describe.each([
  [32, 2e-2],
  [16, 1e-1],
] as const)('answers of the embedded model in Q8_0 with a cache of %i bits', (cacheBits, tolerance) => {
  it.skipIf(why)(`have the log-probabilities that the trainer computes${because}`, async () => {
    const model = path.join(made, `embedded-${cacheBits}.gguf`);
    quantize(fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url)), model);
    await using runtime = await createRuntime({ model: { path: model, cacheBits }, gpu: false, threads: 1 });
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    const trained: number[] = [];
    const served: number[] = [];
    for (const content of QUESTIONS) {
      const { prompt_token_ids, choices } = await runtime.createCompletion({
        messages: [{ role: 'user', content }],
        n: 4,
        seed: 1,
        max_tokens: 60,
        logprobs: true,
        return_token_ids: true,
        stream: false,
      });
      for (const { token_ids, logprobs } of choices) {
        const tokens = Int32Array.from([...prompt_token_ids!, ...token_ids!]);
        trained.push(...(await scores(trainer, tokens)).slice(prompt_token_ids!.length - 1));
        served.push(...logprobs!.content!.map(({ logprob }) => logprob));
      }
    }
    const apart = distances(trained, served);
    expect(apart.at(-1)).toBeLessThan(tolerance);
    expect(mean(apart)).toBeLessThan(tolerance / 20);
    expect(correlation(trained, served)).toBeGreaterThan(0.999);
  });
});
