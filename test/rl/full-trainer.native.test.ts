/** All weights of a model trained: gradients, the engine on the saved file, two ways to compute a row. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FullTrainer, openFullTrainer } from '../../src/rl/full-trainer.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { normals, packSequence, sharedPromptRow as row, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-full-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const normal = normals(3);
const targetWeights = Float32Array.from({ length: 32 }, () => Math.abs(normal()) / 32);
const open = (model: string, arithmetic: 'exact' | 'fast' = 'exact') =>
  openFullTrainer({ model, threads: 1, arithmetic });

/** The row's loss with one weight moved. */
async function lossAt(trainer: FullTrainer, name: string, index: number, step: number): Promise<number> {
  const before = trainer.weight(name);
  await trainer.setWeights({ [name]: before.map((value, i) => (i === index ? value + step : value)) });
  const logprobs = await trainer.forward(row);
  await trainer.setWeights({ [name]: before });
  return -logprobs.reduce((sum, value, i) => sum + value * targetWeights[i]!, 0);
}

const cases = [
  { architecture: 'llama', isTied: true },
  { architecture: 'qwen2', isTied: false },
  { architecture: 'qwen3', isTied: true },
  { architecture: 'gemma3', isTied: true },
  { architecture: 'gemma2', isTied: true },
  { architecture: 'granite', isTied: false },
  { architecture: 'phi3', isTied: true },
] as const;

describe.each(cases)('$architecture, tied embeddings: $isTied', (shape) => {
  const model = path.join(folder, `${shape.architecture}.gguf`);
  beforeAll(() => writeTinyModel(model, { ...shape, type: 'f16', width: 64, hidden: 96, headSize: 16 }));

  it('computes what the trainer of adapters computes', async () => {
    await using full = await open(model);
    await using adapted = await openTrainer({ model, gpu: false, threads: 1, arithmetic: 'exact' });
    const { logprobs } = await adapted.forward(row, { gradients: false });
    const own = await full.forward(row);
    for (const [i, value] of own.entries()) expect(Math.abs(value - logprobs[i]!)).toBeLessThan(1e-4);
  });

  it('has the gradients of every kind of weight that finite differences give', async () => {
    await using trainer = await open(model);
    await trainer.addGradients(row, targetWeights);
    for (const { name } of trainer.parameters) {
      const gradient = trainer.gradient(name);
      // The entry with the largest gradient: those near 0 drown in rounding.
      const index = gradient.reduce((best, g, i) => (Math.abs(g) > Math.abs(gradient[best]!) ? i : best), 0);
      const step = 2e-3;
      const upper = await lossAt(trainer, name, index, step);
      const lower = await lossAt(trainer, name, index, -step);
      const difference = (upper - lower) / (2 * step);
      expect(Math.abs(difference - gradient[index]!), `${name}[${index}]: ${gradient[index]}`).toBeLessThan(
        0.02 * Math.abs(gradient[index]!) + 2e-5,
      );
    }
  });

  it('has nearly the same gradients in BF16', async () => {
    await using exact = await open(model);
    await using fast = await open(model, 'fast');
    for (const trainer of [exact, fast]) await trainer.addGradients(row, targetWeights);
    for (const { name } of exact.parameters) {
      const [a, b] = [exact.gradient(name), fast.gradient(name)];
      expect(cosine(a, b), name).toBeGreaterThan(0.999);
    }
  });
});

it('takes the factors of LongRoPE that the context has', async () => {
  const model = path.join(folder, 'long.gguf');
  await writeTinyModel(model, {
    architecture: 'phi3',
    type: 'f16',
    headSize: 16,
    metadata: [
      ['phi3.rope.scaling.type', 'longrope'],
      ['phi3.rope.scaling.original_context_length', 128],
    ],
    tensors: ['rope_factors_long.weight', 'rope_factors_short.weight'],
  });
  const scores: Float32Array[] = [];
  for (const contextSize of [128, 256]) {
    await using full = await openFullTrainer({ model, threads: 1, contextSize });
    const settings = { gpu: false, threads: 1, arithmetic: 'exact', contextSize } as const;
    await using adapted = await openTrainer({ model, ...settings });
    const [own, { logprobs }] = [await full.forward(row), await adapted.forward(row, { gradients: false })];
    for (const [i, value] of own.entries()) expect(Math.abs(value - logprobs[i]!)).toBeLessThan(1e-4);
    scores.push(own);
  }
  expect(Math.max(...scores[0]!.map((value, i) => Math.abs(value - scores[1]![i]!)))).toBeGreaterThan(1e-2);
});

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

describe('a training run', () => {
  const model = path.join(folder, 'run.gguf');
  beforeAll(() =>
    writeTinyModel(model, {
      architecture: 'llama',
      type: 'f16',
      width: 64,
      hidden: 96,
      headSize: 32,
      isTied: true,
    }),
  );

  it('learns a row by heart, and the engine reads the file as the trainer computes it', async () => {
    await using trainer = await open(model);
    const sequence = packSequence(Int32Array.from({ length: 32 }, (_, i) => (i * 53) % 300));
    const weights = new Float32Array(31).fill(1 / 31);
    const loss = (logprobs: Float32Array) => -logprobs.reduce((sum, value) => sum + value, 0) / 31;
    const before = loss(await trainer.forward(sequence));
    for (let i = 0; i < 60; i++) {
      await trainer.addGradients(sequence, weights);
      const { isApplied } = await trainer.step({ learningRate: 5e-3 });
      expect(isApplied).toBe(true);
    }
    expect(before).toBeGreaterThan(4);
    expect(loss(await trainer.forward(sequence))).toBeLessThan(0.5);

    const file = path.join(folder, 'learned.gguf');
    await trainer.save(file);
    await using reader = await open(file);
    const own = await reader.forward(sequence);
    const engine = await engineScores(file, sequence.tokens);
    for (const [i, value] of engine.entries()) expect(Math.abs(value - own[i]!)).toBeLessThan(2e-2);
  });

  it('changes nothing when a gradient is not finite', async () => {
    await using trainer = await open(model);
    const before = trainer.weight('output_norm.weight');
    await trainer.addGradients(
      row,
      targetWeights.map(() => Number.NaN),
    );
    expect((await trainer.step({ learningRate: 1 })).isApplied).toBe(false);
    expect(trainer.weight('output_norm.weight')).toEqual(before);
  });

  it.each([
    ['too few weights', row, new Float32Array(3), 'targetWeights: expected 32 entries, got 3'],
    [
      'a token outside the vocabulary',
      { ...row, tokens: row.tokens.map(() => 9999) },
      targetWeights,
      'tokens',
    ],
  ])('refuses %s', async (_, given, weights, message) => {
    await using trainer = await open(model);
    await expect(trainer.addGradients(given, weights)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
  });

  it('refuses wrong arguments by name', async () => {
    await using trainer = await open(model);
    const any = trainer as unknown as Record<string, (...given: unknown[]) => unknown>;
    for (const [use, message] of [
      [() => any['addGradients']!(row), 'targetWeights: expected a Float32Array, got nothing'],
      [() => any['forward']!(null), 'row: expected an object, got null'],
      [
        () => any['setWeights']!({ 'output_norm.weight': [1] }),
        'output_norm.weight: expected a Float32Array',
      ],
      [() => any['step']!({ learningRate: 1, beta3: 1 }), 'beta3: not a field of options'],
      [() => any['save']!(''), 'file: expected a non-empty string, got ""'],
      [() => any['weight']!(5), 'name: expected a string, got 5'],
      [() => any['gradient']!('no.such'), 'no.such'],
    ] as const) {
      const error = await Promise.resolve()
        .then(use)
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'INVALID_REQUEST', message: expect.stringContaining(message) });
    }
  });

  it('refuses weights of a quantized type, and calls after closing', async () => {
    const quantized = path.join(folder, 'q8.gguf');
    await writeTinyModel(quantized, { architecture: 'llama', type: 'q8_0' });
    await expect(open(quantized)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    const trainer = await open(model);
    await trainer.close();
    await trainer.close();
    await expect(trainer.forward(row)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
