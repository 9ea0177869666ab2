/** Adapters of experts: the engine's log-probabilities, gradients against central differences, and every file that they are written to. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/engine/native/index.ts';
import { readSafetensors } from '../../src/models/lora/safetensors.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { architectureFiles } from '../architectures/files.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { drawnExperts } from './drawn-experts.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packAnswers, packSequence } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-expert-adapters-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const SPLIT = ['ffn_gate_exps', 'ffn_up_exps', 'ffn_down_exps'];
/** With biases, a shared expert, a gate and a norm of their own, matrices side by side; and whether PEFT has names for them. */
const MODELS: readonly (readonly [name: string, modules: readonly string[], hasPeft: boolean])[] = [
  ['qwen3moe', SPLIT, true],
  ['qwen3next', SPLIT, true],
  ['glm4moe', SPLIT, true],
  ['gpt-oss', SPLIT, false],
  ['gemma4-moe', ['ffn_gate_up_exps', 'ffn_down_exps'], false],
];
const files = architectureFiles(MODELS.map(([name]) => name));
const row = packSequence(Int32Array.from({ length: 56 }, (_, i) => (i * 53 + (i % 7)) % 250));
const apart = (a: Float32Array, b: Float32Array) => Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));

const options = { rank: 4, alpha: 8, gpu: false as const, threads: 1, contextSize: 256 };

describe.each(MODELS)('%s', (name, modules, hasPeft) => {
  const model = files[name]!;
  const checkpoint = path.join(folder, name);
  const gguf = path.join(checkpoint, CHECKPOINT_FILES.gguf);
  let scores: Float32Array;
  const open = async (arithmetic: 'engine' | 'exact' = 'engine'): Promise<Trainer> => {
    const trainer = await openTrainer({ ...options, model, modules, arithmetic });
    await trainer.loadAdapter(randomAdapter(trainer, normals(23), 0.2));
    return trainer;
  };

  beforeAll(async () => {
    await using trainer = await open();
    await trainer.save(checkpoint);
    scores = await engineScores(model, row.tokens, gguf, 'auto');
  });

  it("has the engine's log-probabilities", async () => {
    await using trainer = await open();
    const { count } = trainer.info.routing!;
    expect(trainer.info.modules.every(({ experts }) => experts === count)).toBe(true);
    const { logprobs } = await trainer.forward(row, { gradients: false });
    const off = await trainer.forward(row, { gradients: false, adapterOff: true });
    expect(apart(logprobs, scores)).toBeLessThan(name === 'gemma4-moe' ? 5e-3 : 3e-5);
    expect(apart(off.logprobs, scores)).toBeGreaterThan(0.1);
  });

  it('has the gradients of central differences', async () => {
    await using trainer = await open('exact');
    const shared = packAnswers(20, [12, 16]);
    const given = { ...shared, routedExperts: drawnExperts(trainer.info, shared.tokens.length) };
    const normal = normals(19);
    const gradLogprobs = Float32Array.from(given.targetTokens, () => normal() / 8);
    const weights = trainer.adapter();
    const gradients = await gradientsOfRow(trainer, given, gradLogprobs);
    for (const kind of modules)
      for (const factor of ['a', 'b'] as const) {
        // Moves the factors of all layers at once, along the gradient.
        const names = Object.keys(weights).filter((module) => module.endsWith(kind));
        const length = Math.hypot(...names.map((module) => Math.hypot(...gradients[module]![factor])));
        const at = async (step: number) => {
          const moved = names.map((module) => {
            const by = gradients[module]![factor];
            const values = weights[module]![factor].map((value, i) => value + (step * by[i]!) / length);
            return [module, { ...weights[module]!, [factor]: values }];
          });
          await trainer.loadAdapter(Object.fromEntries(moved));
          const { logprobs } = await trainer.forward(given, { gradients: false });
          return logprobs.reduce((sum, value, i) => sum + value * gradLogprobs[i]!, 0);
        };
        const errors: number[] = [];
        for (const step of [0.005, 0.02, 0.002, 0.05, 0.0007, 0.0003]) {
          if (errors.some((error) => error < 1e-4)) break;
          const near = (await at(step)) - (await at(-step));
          const far = (await at(2 * step)) - (await at(-2 * step));
          errors.push(Math.abs((8 * near - far) / (12 * step) - length) / length);
        }
        await trainer.loadAdapter(weights);
        expect(Math.min(...errors), `${kind}.${factor}`).toBeLessThan(1e-4);
      }
  });

  it('comes back from its files, and merged into the weights', async () => {
    await using saved = await open();
    const expected = saved.adapter();
    const peft = path.join(checkpoint, CHECKPOINT_FILES.peft);
    expect(fs.existsSync(peft)).toBe(hasPeft);
    for (const source of [checkpoint, gguf, ...(hasPeft ? [peft] : [])]) {
      await using trainer = await openTrainer({ ...options, model, modules, seed: 5 });
      expect(trainer.adapter()).not.toEqual(expected);
      await trainer.loadAdapter(source);
      expect(trainer.adapter(), source).toEqual(expected);
    }
    await using again = await openTrainer({ ...options, model, modules, seed: 6 });
    await again.load(checkpoint);
    expect(again.adapter()).toEqual(expected);
    const merged = path.join(folder, `${name}-merged.gguf`);
    const scales = Float32Array.of(1);
    await loadAddon().mergeModel({
      ...{ model, files: [gguf], scales, types: 'widest', threads: 1, to: merged },
      ...{ textKeys: [], texts: [], numberKeys: [], numbers: new Float32Array() },
    });
    const ofMerged = await engineScores(merged, row.tokens, '', 'auto');
    expect(apart(ofMerged, scores)).toBeLessThan(name === 'gemma4-moe' ? 2e-2 : 1e-4);
  });
});

it('each expert has names in PEFT', async () => {
  const { tensors } = readSafetensors(fs.readFileSync(path.join(folder, 'qwen3moe', CHECKPOINT_FILES.peft)));
  const { shape } = tensors['base_model.model.model.layers.0.mlp.experts.7.down_proj.lora_A.weight']!;
  expect(shape[0]).toBe(options.rank);
  const config = JSON.parse(
    fs.readFileSync(path.join(folder, 'qwen3moe', CHECKPOINT_FILES.peftConfig), 'utf8'),
  );
  const pattern = new RegExp(`^(${config.target_modules})$`);
  expect(pattern.test('model.layers.0.mlp.experts.7.down_proj')).toBe(true);
  for (const other of [
    'model.layers.0.mlp.gate',
    'model.layers.0.self_attn.q_proj',
    'model.layers.9.mlp.experts.7.up_proj',
  ])
    expect(pattern.test(other), other).toBe(false);
});

it('the memory of their factors is said beforehand', async () => {
  const file = files['qwen3moe']!;
  const bytes = async (trainingModules: string[]) =>
    (await inspectModel(file, { trainingTokens: 64, trainingModules })).training.bytes!;
  const more = (await bytes(['attn_q', ...SPLIT])) - (await bytes(['attn_q']));
  await using trainer = await openTrainer({ ...options, rank: 8, model: file, modules: SPLIT });
  const numbers = trainer.info.modules.reduce(
    (sum, module) => sum + 8 * module.experts * (module.in + module.out),
    0,
  );
  expect(more).toBeGreaterThan(24 * numbers); // values, gradients, two moments, and two copies
  await expect(inspectModel(file, { trainingModules: ['ffn_no_exps'] })).rejects.toThrow(
    /modules: none of the names/,
  );
});
