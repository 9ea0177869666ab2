/** Rows that say which experts their tokens take: log-probabilities and gradients of that choice, whatever the trainer's router prefers. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readHeader } from '../../src/engine/gguf/index.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { architectureFiles } from '../architectures/files.ts';
import { engineExperts, engineScores } from '../fakes/engine-scores.ts';
import { drawnExperts } from './drawn-experts.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packAnswers, packSequence, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-routing-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Tensors that change the choice of experts but not their weights, if the value is the same for all chosen experts. */
const PREFERENCES = { 'gpt-oss': 'ffn_gate_inp.bias', glm4moe: 'exp_probs_b.bias' };
const names = Object.keys(PREFERENCES) as (keyof typeof PREFERENCES)[];
const files = architectureFiles([...names, 'qwen35moe', 'gemma4-moe']);
const row = packSequence(Int32Array.from({ length: 56 }, (_, i) => (i * 53 + (i % 7)) % 250));
const largest = (values: Iterable<number>) => Math.max(...[...values].map(Math.abs));
const apart = (a: Float32Array, b: Float32Array) => largest(a.map((value, i) => value - b[i]!));

/** The same model, whose routers prefer the first of each two neighbours of experts by far. */
async function withPreferences(name: keyof typeof PREFERENCES): Promise<string> {
  const file = path.join(folder, `${name}.gguf`);
  fs.copyFileSync(files[name]!, file);
  const { tensors } = await readHeader(file);
  const handle = fs.openSync(file, 'r+');
  for (const [tensor, { offset, shape }] of tensors) {
    if (!tensor.endsWith(PREFERENCES[name])) continue;
    const numbers = new Float32Array(Number(shape[0]));
    fs.readSync(handle, numbers, 0, numbers.byteLength, offset);
    fs.writeSync(
      handle,
      numbers.map((value, i) => value + (i % 2 === 0 ? 50 : 0)),
      0,
      numbers.byteLength,
      offset,
    );
  }
  fs.closeSync(handle);
  return file;
}

const open = (model: string, arithmetic: 'engine' | 'exact' = 'engine'): Promise<Trainer> =>
  openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1, contextSize: 256, arithmetic });

describe('log-probabilities', () => {
  it.each(names)('of %s are those of the router that sampled', async (name) => {
    const sampler = await withPreferences(name);
    const scores = await engineScores(sampler, row.tokens, '', 'auto');
    const routedExperts = await engineExperts(sampler, row.tokens);
    await using trainer = await open(files[name]!);
    const own = await trainer.forward(row, { gradients: false });
    const replayed = await trainer.forward({ ...row, routedExperts }, { gradients: false });
    expect(apart(own.logprobs, scores)).toBeGreaterThan(0.05);
    expect(apart(replayed.logprobs, scores)).toBeLessThan(3e-5);
    const again = await trainer.forward(row, { gradients: false });
    expect(again.logprobs).toEqual(own.logprobs);
  });

  it('tokens without a record take the experts that the trainer chooses', async () => {
    await using trainer = await open(files['qwen35moe']!);
    const { layers, used } = trainer.info.routing!;
    const own = await trainer.forward(row, { gradients: false });
    const unknown = new Int32Array(row.tokens.length * layers * used).fill(-1);
    const free = await trainer.forward({ ...row, routedExperts: unknown }, { gradients: false });
    expect(free.logprobs).toEqual(own.logprobs);
    const first = 20; // tokens before it see no other
    const drawn = drawnExperts(trainer.info, row.tokens.length);
    const partly = Int32Array.from(unknown, (_, i) => (i < first * layers * used ? -1 : drawn[i]!));
    const { logprobs } = await trainer.forward({ ...row, routedExperts: partly }, { gradients: false });
    const same = logprobs.map((value, i) => (value === own.logprobs[i] ? 1 : 0));
    expect([...same.subarray(0, first)]).toEqual(Array(first).fill(1));
    expect([...same.subarray(first)].filter(Boolean).length).toBeLessThan(4);
  });
});

describe('gradients', () => {
  it.each([...names, 'qwen35moe', 'gemma4-moe'])('of %s are those of the given choice', async (name) => {
    await using trainer = await open(files[name]!, 'exact');
    await trainer.loadAdapter(randomAdapter(trainer, normals(23)));
    const shared = packAnswers(20, [12, 16]);
    const given = { ...shared, routedExperts: drawnExperts(trainer.info, shared.tokens.length) };
    const normal = normals(19);
    const gradLogprobs = Float32Array.from(given.targetTokens, () => normal() / 32);
    const weights = trainer.adapter();
    const gradients = await gradientsOfRow(trainer, given, gradLogprobs);
    const loss = async () => {
      const { logprobs } = await trainer.forward(given, { gradients: false });
      return logprobs.reduce((sum, value, i) => sum + value * gradLogprobs[i]!, 0);
    };
    // Along all gradients at once.
    const length = Math.hypot(
      ...Object.values(gradients).flatMap(({ a, b }) => [Math.hypot(...a), Math.hypot(...b)]),
    );
    const at = async (step: number) => {
      const moved = Object.entries(weights).map(([module, { a, b }]) => {
        const by = gradients[module]!;
        const move = (values: Float32Array, gradient: Float32Array) =>
          values.map((value, i) => value + (step * gradient[i]!) / length);
        return [module, { a: move(a, by.a), b: move(b, by.b) }];
      });
      await trainer.loadAdapter(Object.fromEntries(moved));
      return await loss();
    };
    const errors: number[] = [];
    for (const step of [0.005, 0.02, 0.002, 0.0007, 0.0003]) {
      if (errors.some((error) => error < 1e-4)) break;
      const near = (await at(step)) - (await at(-step));
      const far = (await at(2 * step)) - (await at(-2 * step));
      errors.push(Math.abs((8 * near - far) / (12 * step) - length) / length);
    }
    expect(Math.min(...errors)).toBeLessThan(1e-4);
  });
});

describe('a row with wrong experts', () => {
  it.each<[string, (given: Int32Array) => Int32Array, RegExp]>([
    [
      'too few',
      (given) => given.subarray(1),
      /routedExperts: expected \d+ numbers, 2 for each token and layer, got \d+/,
    ],
    [
      'a number too high',
      (given) => given.with(0, 8),
      /routedExperts: expected different numbers from 0 to 7 .* got 8/,
    ],
    ['one number twice', (given) => given.with(0, given[1]!), /routedExperts: expected different numbers/],
    ['a part of a choice', (given) => given.with(0, -1), /routedExperts: .* or -1 for all of them, got -1/],
  ])('%s', async (_, change, message) => {
    await using trainer = await open(files['gpt-oss']!);
    const routedExperts = change(drawnExperts(trainer.info, row.tokens.length));
    await expect(trainer.forward({ ...row, routedExperts })).rejects.toThrow(message);
  });

  it('of a model without experts', async () => {
    const model = path.join(folder, 'dense.gguf');
    await writeTinyModel(model, { architecture: 'qwen3', type: 'f32', layers: 1 });
    await using trainer = await open(model);
    expect(trainer.info.routing).toBeNull();
    await expect(trainer.forward({ ...row, routedExperts: new Int32Array(56) })).rejects.toThrow(
      'routedExperts: expected none, as this model has no experts',
    );
  });
});
