import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import type { PackedRow } from '../../src/protocol/index.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { architectureFiles } from '../architectures/files.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packAnswers, sharedPromptRow as row, writeTinyModel } from './tiny-model.ts';

const TYPES = 'f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_K q3_K q4_K q5_K q6_K iq4_nl iq4_xs'.split(' ');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-gradients-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const normal = normals(3);
const gradLogprobs = Float32Array.from({ length: 32 }, () => normal() / 32);
const gradientsOf = (trainer: Trainer, given = row, gradient = gradLogprobs): Promise<AdapterWeights> =>
  gradientsOfRow(trainer, given, gradient);

/** Compares the gradients of products as the engine computes them with those of 32-bit ones. */
async function expectCloseGradients(model: string, threads: number): Promise<void> {
  await using exact = await openTrainer({ model, gpu: false, threads, arithmetic: 'exact' });
  await using fast = await openTrainer({ model, gpu: false, threads });
  const weights = randomAdapter(exact, normal, 0.02);
  await exact.loadAdapter(weights);
  await fast.loadAdapter(weights);
  const expected = await gradientsOf(exact);
  const got = await gradientsOf(fast);
  for (const [module, factors] of Object.entries(expected))
    for (const factor of ['a', 'b'] as const) {
      const error = Math.hypot(...got[module]![factor].map((value, i) => value - factors[factor][i]!));
      expect(error / Math.hypot(...factors[factor]), `${module}.${factor}`).toBeLessThan(0.05);
    }
}

/** sum of gradLogprobs x logprobs with one adapter entry moved. */
async function lossAt(
  trainer: Trainer,
  weights: AdapterWeights,
  module: string,
  factor: 'a' | 'b',
  index: number,
  step: number,
): Promise<number> {
  const moved = Float32Array.from(weights[module]![factor]);
  moved[index]! += step;
  await trainer.loadAdapter({ [module]: { ...weights[module]!, [factor]: moved } });
  const { logprobs } = await trainer.forward(row, { gradients: false });
  await trainer.loadAdapter({ [module]: weights[module]! });
  return logprobs.reduce((sum, value, i) => sum + value * gradLogprobs[i]!, 0);
}

describe.each([
  ...TYPES.map((type) => ['qwen3', type] as const),
  ['gemma3', 'f32'],
  ['gemma3', 'q8_0'],
] as const)('%s with weights of type %s', (architecture, type) => {
  const model = path.join(folder, `${architecture}-${type}.gguf`);
  beforeAll(() => writeTinyModel(model, { architecture, type }));

  it('has the gradients that finite differences give', async () => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 1, arithmetic: 'exact' });
    const weights = randomAdapter(trainer, normal, 0.02);
    await trainer.loadAdapter(weights);
    const gradients = await gradientsOf(trainer);
    const step = 0.03;
    for (const module of ['blk.0.attn_q', 'blk.0.attn_k', 'blk.0.ffn_gate', 'blk.1.attn_v', 'blk.1.ffn_down'])
      for (const factor of ['a', 'b'] as const) {
        const gradient = gradients[module]![factor];
        const typical = Math.hypot(...gradient) / Math.sqrt(gradient.length);
        const index = Math.floor(Math.abs(normal()) * 1000) % gradient.length;
        const upper = await lossAt(trainer, weights, module, factor, index, step);
        const lower = await lossAt(trainer, weights, module, factor, index, -step);
        const difference = (upper - lower) / (2 * step);
        const scale = Math.max(Math.abs(gradient[index]!), typical / 4); // entries near 0 drown in rounding
        expect(Math.abs(difference - gradient[index]!) / scale, `${module}.${factor}[${index}]`).toBeLessThan(
          0.02,
        );
      }
  });

  it('keeps them close when products are computed as the engine does', () => expectCloseGradients(model, 1));
});

describe.each([4128, 4136, 4160])('a vocabulary of %i tokens', (vocabularySize) => {
  it('needs no whole panels of a fast product', async () => {
    const model = path.join(folder, `${vocabularySize}.gguf`);
    await writeTinyModel(model, { architecture: 'llama', type: 'q8_0', vocabularySize });
    await expectCloseGradients(model, 2);
  });
});

describe.each([
  'qwen3',
  'gemma3',
  'qwen35',
  'qwen3next',
  'lfm2',
  'gpt-oss',
  'gemma3n',
  'gemma4',
  'gemma4-moe',
])('a shared prompt, %s', (architecture) => {
  let model: string;
  beforeAll(async () => {
    model = path.join(folder, `shared-${architecture}.gguf`);
    if (architecture === 'qwen3' || architecture === 'gemma3')
      await writeTinyModel(model, { architecture, type: 'f32' });
    else model = architectureFiles([architecture])[architecture]!;
  });

  const promptSize = 45;
  const answerSizes = [70, 33, 150, 1, 64];
  /** Returns true if the row's target `i` belongs to answer `group`. */
  const isOf = (group: number, i: number) => {
    const before = answerSizes.slice(0, group - 1).reduce((sum, size) => sum + size, 0);
    return i >= before && i < before + answerSizes[group - 1]!;
  };

  /** The answer's own row: its prompt and itself alone. */
  const alone = (shared: PackedRow, group: number): PackedRow => {
    const places = [...shared.groupIds.keys()].filter((i) => [0, group].includes(shared.groupIds[i]!));
    const targets = [...shared.logitRows.keys()].filter((i) => isOf(group, i));
    return {
      tokens: Int32Array.from(places, (i) => shared.tokens[i]!),
      positions: Int32Array.from(places, (i) => shared.positions[i]!),
      groupIds: new Int32Array(places.length),
      parentIds: new Int32Array(places.length),
      logitRows: Int32Array.from(targets, (i) => places.indexOf(shared.logitRows[i]!)),
      targetTokens: Int32Array.from(targets, (i) => shared.targetTokens[i]!),
    };
  };

  it('gives answers of any length what separate rows give, on the way there and back', async () => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 2, arithmetic: 'exact' });
    await trainer.loadAdapter(randomAdapter(trainer, normal, 0.02));
    const shared = packAnswers(promptSize, answerSizes);
    const gradient = Float32Array.from(shared.targetTokens, () => normal() / 32);
    const { logprobs } = await trainer.forward(shared);
    const together = await gradientsOf(trainer, shared, gradient);
    const sums = Object.fromEntries(
      Object.entries(together).map(([name, { a, b }]) => [name, { a: a.map(() => 0), b: b.map(() => 0) }]),
    );
    for (const group of [1, 2, 3, 4, 5]) {
      const one = alone(shared, group);
      const mine = (_: number, i: number) => isOf(group, i);
      const own = await trainer.forward(one);
      for (const [i, expected] of logprobs.filter(mine).entries())
        expect(Math.abs(own.logprobs[i]! - expected)).toBeLessThan(1e-4);
      for (const [name, factors] of Object.entries(await gradientsOf(trainer, one, gradient.filter(mine))))
        for (const factor of ['a', 'b'] as const)
          factors[factor].forEach((value, i) => {
            sums[name]![factor][i]! += value;
          });
    }
    for (const [name, factors] of Object.entries(together))
      for (const factor of ['a', 'b'] as const) {
        const error = Math.hypot(...factors[factor].map((value, i) => value - sums[name]![factor][i]!));
        expect(error / Math.hypot(...factors[factor]), `${name}.${factor}`).toBeLessThan(1e-4);
      }
  });

  it('gives a row the same whatever rows came before it', async () => {
    await using fresh = await openTrainer({ model, gpu: false, threads: 1 });
    await using used = await openTrainer({ model, gpu: false, threads: 1 });
    const weights = randomAdapter(fresh, normal, 0.02);
    for (const trainer of [fresh, used]) await trainer.loadAdapter(weights);
    const long = packAnswers(promptSize, answerSizes);
    await gradientsOf(used, long, new Float32Array(long.targetTokens.length).fill(1));
    await used.forward(packAnswers(3, [5]), { gradients: false });
    expect(await gradientsOf(used)).toEqual(await gradientsOf(fresh));
    expect(used.memory().bytes).toBeGreaterThan(fresh.memory().bytes);
  });
});

describe('a row of a model with recurrent layers', () => {
  it('must be made of sequences', async () => {
    const model = architectureFiles(['lfm2'])['lfm2']!;
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    const shared = packAnswers(2, [2, 2]);
    // The second answer sees the first one, which sees the prompt, but not the prompt itself.
    const parentIds = shared.groupIds.map((group) => Math.max(0, group - 1));
    await expect(trainer.forward({ ...shared, parentIds })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(/^parentIds: token 4 does not see what token 3 before it sees/),
    });
  });
});

describe('experts in MXFP4', () => {
  it('are read as they are on the way back', async () => {
    const model = path.join(folder, 'mxfp4.gguf');
    // Both experts of each token, so that rounding changes no choice.
    await writeTinyModel(model, { architecture: 'llama', type: 'mxfp4', experts: 2 });
    await expectCloseGradients(model, 2);
  });
});

describe('an unfit model', () => {
  it('names the architectures that can be trained', async () => {
    const model = path.join(folder, 'other.gguf');
    await writeTinyModel(model, { architecture: 'gpt2' as 'llama', type: 'f32' });
    await expect(openTrainer({ model, gpu: false })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(/llama, .*qwen2, .*gpt-oss; this model's is "gpt2"/),
    });
  });

  it.each([
    ['missing.gguf', null, 'MODEL_NOT_FOUND'],
    ['text.gguf', 'no model at all', 'MODEL_INVALID'],
  ])('%s is an error', async (name, content, code) => {
    const model = path.join(folder, name);
    if (content !== null) fs.writeFileSync(model, content);
    await expect(openTrainer({ model, gpu: false })).rejects.toMatchObject({ code });
  });

  it('a truncated file is an error', async () => {
    const whole = path.join(folder, 'whole.gguf');
    await writeTinyModel(whole, { architecture: 'llama', type: 'f16' });
    const model = path.join(folder, 'truncated.gguf');
    fs.writeFileSync(model, fs.readFileSync(whole).subarray(0, 200_000));
    await expect(openTrainer({ model, gpu: false })).rejects.toMatchObject({ code: 'MODEL_INVALID' });
  });
});

describe('misuse', () => {
  const model = path.join(folder, 'misuse.gguf');
  beforeAll(() => writeTinyModel(model, { architecture: 'qwen2', type: 'f32', layers: 1 }));

  it.each<[string, Partial<PackedRow>, RegExp]>([
    [
      'a token outside the vocabulary',
      { tokens: Int32Array.of(99_999, ...row.tokens.subarray(1)) },
      /no token/,
    ],
    ['columns of different lengths', { positions: Int32Array.of(1) }, /differ in length/],
    ['a row index outside the row', { logitRows: row.logitRows.map(() => 48) }, /outside the row/],
    ['no targets', { logitRows: new Int32Array(), targetTokens: new Int32Array() }, /at least one/],
    ['another array type', { tokens: new Float64Array(48) as unknown as Int32Array }, /Int32Array/],
  ])('%s', async (_, change, message) => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    await expect(trainer.forward({ ...row, ...change })).rejects.toThrow(message);
  });

  it('a backward pass without its forward pass', async () => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    await expect(trainer.backward(gradLogprobs)).rejects.toThrow(/needs a forward/);
    await trainer.forward(row);
    await trainer.step({ learningRate: 0 });
    await expect(trainer.backward(gradLogprobs)).rejects.toThrow(/needs a forward/);
  });

  it.each<
    [string, (trainer: Record<string, (...given: unknown[]) => Promise<unknown>>) => Promise<unknown>, string]
  >([
    ['no row', (trainer) => trainer['forward']!(), 'row: expected an object, got nothing'],
    [
      'half a row',
      (trainer) => trainer['forward']!({ tokens: row.tokens }),
      'positions: this field is required',
    ],
    [
      'options that are none',
      (trainer) => trainer['forward']!(row, null),
      'options: expected an object, got null',
    ],
    [
      'an unknown option',
      (trainer) => trainer['forward']!(row, { gradient: true }),
      'did you mean gradients?',
    ],
    [
      'no gradients',
      (trainer) => trainer['backward']!(),
      'gradLogprobs: expected a Float32Array, got nothing',
    ],
    ['no rate', (trainer) => trainer['step']!(), 'options: expected an object, got nothing'],
    [
      'a rate below 0',
      (trainer) => trainer['step']!({ learningRate: -1 }),
      'learningRate: expected a number from 0 to',
    ],
    [
      'a beta above 1',
      (trainer) => trainer['step']!({ learningRate: 1, beta1: 2 }),
      'beta1: expected a number from 0 to 1, got 2',
    ],
    [
      'an unknown setting',
      (trainer) => trainer['step']!({ learningRate: 1, epsilon: 0 }),
      'epsilon: not a field of options',
    ],
    [
      'no adapter',
      (trainer) => trainer['loadAdapter']!(null),
      'source: expected a non-empty string or an object, got null',
    ],
    [
      'half a module',
      (trainer) => trainer['loadAdapter']!({ 'blk.0.attn_q': { a: [1] } }),
      'blk.0.attn_q.b: this field is required',
    ],
    ['no folder', (trainer) => trainer['save']!(), 'folder: expected a non-empty string, got nothing'],
    ['a folder that is none', (trainer) => trainer['load']!(5), 'folder: expected a non-empty string, got 5'],
  ])('%s', async (_, use, message) => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    const before = trainer.adapter();
    await expect(use(trainer as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
    expect(trainer.adapter()).toEqual(before);
    await trainer.forward(row);
  });

  it('an option that is undefined has its default', async () => {
    await using trainer = await openTrainer({
      model,
      gpu: false,
      threads: 1,
      rank: undefined,
      seed: undefined,
    });
    expect(trainer.info.rank).toBe(8);
    await trainer.forward(row);
    await trainer.backward(gradLogprobs);
    expect(await trainer.step({ learningRate: 1e-3, beta1: undefined })).toMatchObject({ isApplied: true });
  });

  it('a closed trainer', async () => {
    const trainer = await openTrainer({ model, gpu: false, threads: 1 });
    await trainer.close();
    await trainer.close();
    await expect(trainer.forward(row)).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('a gradient that is not finite changes nothing', async () => {
    await using trainer = await openTrainer({ model, gpu: false, threads: 1 });
    const before = trainer.adapter();
    await trainer.forward(row);
    await trainer.backward(gradLogprobs.map(() => Number.NaN));
    expect(await trainer.step({ learningRate: 1 })).toMatchObject({ isApplied: false });
    expect(trainer.adapter()).toEqual(before);
  });
});
