import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSafetensors } from '../../src/models/lora/safetensors.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-adapters-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const normal = normals(11);
const tokens = Int32Array.from({ length: 40 }, (_, i) => (i * 53) % 300);
const row = packSequence(tokens);

/** A trainer whose adapter changes the model a good deal. */
async function openChanged(model: string): Promise<Trainer> {
  const trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
  await trainer.loadAdapter(randomAdapter(trainer, normal, 0.1));
  return trainer;
}

function largestDifference(left: Float32Array, right: Float32Array): number {
  return left.reduce((most, value, i) => Math.max(most, Math.abs(value - right[i]!)), 0);
}

function meanDifference(left: Float32Array, right: Float32Array): number {
  return left.reduce((sum, value, i) => sum + Math.abs(value - right[i]!), 0) / left.length;
}

// With 8-bit weights activations are rounded to 8 bits, too: a difference in the last bit of a sum can tip one of them to the
// next step, which on these small models shows in every later token. Mostly both agree to the bit.
describe.each([
  ['llama', 'f32', 1e-4],
  ['qwen2', 'f32', 1e-4],
  ['qwen3', 'f32', 1e-4],
  ['gemma3', 'f32', 1e-4],
  ['llama', 'q8_0', 5e-2],
  ['qwen3', 'q8_0', 5e-2],
] as const)('the adapter of a %s model in %s', (architecture, type, tolerance) => {
  const model = path.join(folder, `${architecture}-${type}.gguf`);
  const checkpoint = path.join(folder, `${architecture}-${type}`);

  it('makes the engine compute what the trainer computes', async () => {
    await writeTinyModel(model, { architecture, type });
    await using trainer = await openChanged(model);
    await trainer.save(checkpoint);
    const score = (adapter: string) => engineScores(model, tokens, adapter);
    const withAdapter = await score(path.join(checkpoint, CHECKPOINT_FILES.gguf));
    const without = await score('');
    const { logprobs } = await trainer.forward(row, { gradients: false });
    const off = await trainer.forward(row, { gradients: false, adapterOff: true });
    expect(largestDifference(logprobs, withAdapter)).toBeLessThan(tolerance);
    expect(meanDifference(logprobs, withAdapter)).toBeLessThan(tolerance / 2.5);
    expect(largestDifference(off.logprobs, without)).toBeLessThan(tolerance);
    expect(largestDifference(withAdapter, without)).toBeGreaterThan(0.1);
  });

  it('comes back from each of its files', async () => {
    await using saved = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
    await saved.load(checkpoint);
    const expected = saved.adapter();
    for (const name of [CHECKPOINT_FILES.gguf, CHECKPOINT_FILES.peft]) {
      await using trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1, seed: 5 });
      expect(trainer.adapter()).not.toEqual(expected);
      await trainer.loadAdapter(path.join(checkpoint, name));
      expect(trainer.adapter()).toEqual(expected);
    }
  });
});

describe('the PEFT files', () => {
  it('have the names, shapes and row order of Hugging Face', async () => {
    const model = path.join(folder, 'peft.gguf');
    await writeTinyModel(model, { architecture: 'llama', type: 'f32', layers: 1 });
    await using trainer = await openChanged(model);
    const checkpoint = path.join(folder, 'peft');
    await trainer.save(checkpoint);
    const { tensors } = readSafetensors(fs.readFileSync(path.join(checkpoint, CHECKPOINT_FILES.peft)));
    const prefix = 'base_model.model.model.layers.0.';
    expect(Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape]))).toEqual({
      [`${prefix}self_attn.q_proj.lora_A.weight`]: [4, 256],
      [`${prefix}self_attn.q_proj.lora_B.weight`]: [256, 4],
      [`${prefix}self_attn.k_proj.lora_A.weight`]: [4, 256],
      [`${prefix}self_attn.k_proj.lora_B.weight`]: [128, 4],
      [`${prefix}self_attn.v_proj.lora_A.weight`]: [4, 256],
      [`${prefix}self_attn.v_proj.lora_B.weight`]: [128, 4],
      [`${prefix}self_attn.o_proj.lora_A.weight`]: [4, 256],
      [`${prefix}self_attn.o_proj.lora_B.weight`]: [256, 4],
      [`${prefix}mlp.gate_proj.lora_A.weight`]: [4, 256],
      [`${prefix}mlp.gate_proj.lora_B.weight`]: [512, 4],
      [`${prefix}mlp.up_proj.lora_A.weight`]: [4, 256],
      [`${prefix}mlp.up_proj.lora_B.weight`]: [512, 4],
      [`${prefix}mlp.down_proj.lora_A.weight`]: [4, 512],
      [`${prefix}mlp.down_proj.lora_B.weight`]: [256, 4],
    });
    // Heads of 64 rows: row 1 of the file's second pair member is row 32 of the head in Hugging Face's order.
    const ours = trainer.adapter()['blk.0.attn_q']!.b;
    const theirs = tensors[`${prefix}self_attn.q_proj.lora_B.weight`]!.values;
    expect(theirs.subarray(32 * 4, 33 * 4)).toEqual(ours.subarray(1 * 4, 2 * 4));
    expect(theirs.subarray(1 * 4, 2 * 4)).toEqual(ours.subarray(2 * 4, 3 * 4));
    const config = JSON.parse(fs.readFileSync(path.join(checkpoint, CHECKPOINT_FILES.peftConfig), 'utf8'));
    expect(config).toMatchObject({ peft_type: 'LORA', r: 4, lora_alpha: 8, bias: 'none' });
    expect(config.target_modules).toContain('q_proj');
  });
});

describe('a rank-stabilized adapter', () => {
  const model = path.join(folder, 'rslora.gguf');
  const checkpoint = path.join(folder, 'rslora');
  const open = (options: { alpha: number; rslora?: boolean }) =>
    openTrainer({ model, rank: 4, gpu: false, threads: 1, ...options });

  it('has the scale alpha / sqrt(rank) in the trainer, the engine and PEFT', async () => {
    await writeTinyModel(model, { architecture: 'qwen3', type: 'f32', layers: 1 });
    await using trainer = await open({ alpha: 8, rslora: true });
    const weights = randomAdapter(trainer, normal);
    await trainer.loadAdapter(weights);
    await trainer.save(checkpoint);
    const adapter = path.join(checkpoint, CHECKPOINT_FILES.gguf);
    const served = await engineScores(model, tokens, adapter);
    const { logprobs } = await trainer.forward(row, { gradients: false });
    expect(largestDifference(logprobs, served)).toBeLessThan(1e-4);
    await using plain = await open({ alpha: 16 }); // 8 / sqrt(4) = 16 / 4
    await plain.loadAdapter(weights);
    expect((await plain.forward(row, { gradients: false })).logprobs).toEqual(logprobs);
    const config = JSON.parse(fs.readFileSync(path.join(checkpoint, CHECKPOINT_FILES.peftConfig), 'utf8'));
    expect(config).toMatchObject({ use_rslora: true, use_dora: false, r: 4, lora_alpha: 8 });
  });

  it('comes back with its own scale only', async () => {
    await using same = await open({ alpha: 8, rslora: true });
    await same.load(checkpoint);
    await same.loadAdapter(path.join(checkpoint, CHECKPOINT_FILES.gguf));
    await using other = await open({ alpha: 8 });
    for (const source of [checkpoint, path.join(checkpoint, CHECKPOINT_FILES.gguf)])
      await expect(other.loadAdapter(source)).rejects.toThrow(/trainer was opened with/);
  });
});

describe('a saved optimizer', () => {
  it('goes on as if nothing had happened', async () => {
    const model = path.join(folder, 'optimizer.gguf');
    await writeTinyModel(model, { architecture: 'qwen3', type: 'f32', layers: 1 });
    const gradient = row.targetTokens.reduce(
      (list, _, i) => list.fill(i % 3 ? -0.1 : 0.2, i),
      new Float32Array(39),
    );
    const train = async (trainer: Trainer) => {
      await trainer.forward(row);
      await trainer.backward(gradient);
      await trainer.step({ learningRate: 1e-3 });
    };
    await using straight = await openChanged(model);
    await train(straight);
    const checkpoint = path.join(folder, 'optimizer');
    await straight.save(checkpoint);
    await train(straight);
    await using resumed = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
    await resumed.load(checkpoint);
    await train(resumed);
    expect(resumed.adapter()).toEqual(straight.adapter());
  });
});
