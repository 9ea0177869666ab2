/** Each architecture that can be trained: the engine's log-probabilities, and gradients against finite differences. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSafetensors } from '../../src/lora/safetensors.ts';
import type { AdapterWeights } from '../../src/native/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openFullTrainer } from '../../src/rl/full-trainer.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, type TinyModel, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-architectures-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Sizes that are small, and whose heads do not divide the width. */
const SMALL = { width: 64, hidden: 96, heads: 4, kvHeads: 2, headSize: 32, layers: 2, vocabularySize: 256 };
const MODELS: readonly (readonly [string, Omit<TinyModel, 'type'>])[] = [
  ['llama with heads of their own size (Mistral)', { architecture: 'llama' }],
  ['llama with experts (Mixtral)', { architecture: 'llama', experts: 4 }],
  ['qwen3moe', { architecture: 'qwen3moe', experts: 5 }],
  ['gemma2', { architecture: 'gemma2', isTied: true }],
  ['smollm3', { architecture: 'smollm3', isTied: true, layers: 4 }],
  ['granite', { architecture: 'granite' }],
  ['granitemoe', { architecture: 'granitemoe', experts: 4 }],
  ['phi3', { architecture: 'phi3', headSize: 16 }],
];
const TYPES = [
  ['f32', 1e-4],
  ['f16', 2e-2],
] as const;

const normal = normals(19);
const row = packSequence(Int32Array.from({ length: 24 }, (_, i) => (i * 53 + (i % 7)) % 250));
const gradLogprobs = Float32Array.from(row.targetTokens, () => normal() / 32);

async function openChanged(model: string, arithmetic: 'engine' | 'exact' = 'engine'): Promise<Trainer> {
  const trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1, arithmetic });
  await trainer.loadAdapter(randomAdapter(trainer, normal));
  return trainer;
}

function correlation(left: Float32Array, right: Float32Array): number {
  const centered = (list: Float32Array) => {
    const values = Array.from(list, Math.exp);
    const middle = values.reduce((sum, value) => sum + value, 0) / values.length;
    return values.map((value) => value - middle);
  };
  const [a, b] = [centered(left), centered(right)];
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0) / (Math.hypot(...a) * Math.hypot(...b));
}

describe.each(MODELS)('%s', (name, given) => {
  it.each(TYPES)(
    "has the engine's log-probabilities in %s, with an adapter and without",
    async (type, tolerance) => {
      const model = path.join(folder, `${name}-${type}.gguf`);
      await writeTinyModel(model, { ...SMALL, ...given, type });
      await using trainer = await openChanged(model);
      const checkpoint = path.join(folder, `${name}-${type}`);
      await trainer.save(checkpoint);
      const adapters = { on: path.join(checkpoint, CHECKPOINT_FILES.gguf), off: '' };
      const scores: Float32Array[] = [];
      for (const [state, adapter] of Object.entries(adapters)) {
        const engine = await engineScores(model, row.tokens, adapter);
        const { logprobs } = await trainer.forward(row, { gradients: false, adapterOff: state === 'off' });
        const apart = Math.max(...logprobs.map((value, i) => Math.abs(value - engine[i]!)));
        const corr = correlation(logprobs, engine);
        process.stdout.write(
          `${name}, ${type}, adapter ${state}: probs_corr ${corr.toFixed(7)}, most apart ${apart.toExponential(1)}\n`,
        );
        expect(apart).toBeLessThan(tolerance);
        expect(corr).toBeGreaterThan(0.9999);
        scores.push(engine);
      }
      expect(Math.max(...scores[0]!.map((value, i) => Math.abs(value - scores[1]![i]!)))).toBeGreaterThan(
        0.02,
      );
    },
  );

  it('has the gradients that finite differences give', async () => {
    await using trainer = await openChanged(path.join(folder, `${name}-f32.gguf`), 'exact');
    const weights = trainer.adapter();
    await trainer.forward(row);
    await trainer.backward(gradLogprobs);
    const gradients = trainer.gradients();
    for (const module of Object.keys(weights))
      for (const factor of ['a', 'b'] as const) {
        const gradient = gradients[module]![factor];
        // Along the gradient itself: every number of the factor counts, and none drowns in rounding.
        const length = Math.hypot(...gradient);
        const step = 0.002; // a larger one could move a token to other experts
        const at = async (sign: number): Promise<number> => {
          const moved = weights[module]![factor].map(
            (value, i) => value + (sign * step * gradient[i]!) / length,
          );
          await trainer.loadAdapter({ [module]: { ...weights[module]!, [factor]: moved } } as AdapterWeights);
          const { logprobs } = await trainer.forward(row, { gradients: false });
          return logprobs.reduce((sum, value, i) => sum + value * gradLogprobs[i]!, 0);
        };
        const difference = ((await at(1)) - (await at(-1))) / (2 * step);
        await trainer.loadAdapter({ [module]: weights[module]! });
        expect(Math.abs(difference - length) / length, `${module}.${factor}`).toBeLessThan(0.02);
      }
  });
});

/** What is refused before training begins, and the word that the error says. */
const REFUSED: readonly (readonly [string, Omit<TinyModel, 'type'>, RegExp])[] = [
  ['a hybrid architecture', { architecture: 'qwen35' as 'llama' }, /this model's is "qwen35"/],
  ['a recurrent architecture', { architecture: 'mamba2' as 'llama' }, /this model's is "mamba2"/],
  [
    'YaRN',
    { architecture: 'qwen3', metadata: [['qwen3.rope.scaling.type', 'yarn']] },
    /rope scaling of type yarn/,
  ],
  ['LongRoPE', { architecture: 'phi3', tensors: ['rope_factors_long.weight'] }, /LongRoPE/],
  [
    'LongRoPE by its factor',
    { architecture: 'phi3', metadata: [['phi3.rope.scaling.attn_factor', { float: 1.2 }]] },
    /LongRoPE/,
  ],
  [
    'experts that all tokens share',
    {
      architecture: 'granitemoe',
      experts: 4,
      metadata: [['granitemoe.expert_shared_feed_forward_length', 32]],
    },
    /experts that all tokens share/,
  ],
  [
    'experts of an architecture that has none',
    { architecture: 'qwen3', experts: 4 },
    /no experts in the architecture qwen3/,
  ],
];

describe('a model that cannot be trained', () => {
  it.each(REFUSED)('%s is refused by name', async (name, given, message) => {
    const model = path.join(folder, `${name}.gguf`);
    await writeTinyModel(model, { ...SMALL, ...given, type: 'f32' });
    await expect(openTrainer({ model, gpu: false })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(message),
    });
  });

  it('has no adapters of experts, and not all its weights are trained', async () => {
    const model = path.join(folder, 'experts.gguf');
    await writeTinyModel(model, { ...SMALL, architecture: 'qwen3moe', experts: 4, type: 'f32' });
    await using trainer = await openTrainer({ model, gpu: false });
    expect(new Set(trainer.info.modules.map(({ name }) => name.replace(/.*\./, '')))).toEqual(
      new Set(['attn_q', 'attn_k', 'attn_v', 'attn_output']),
    );
    await expect(openTrainer({ model, gpu: false, modules: ['ffn_up_exps'] })).rejects.toThrow(
      /none of the names/,
    );
    await expect(openFullTrainer({ model })).rejects.toThrow(/all weights of a model with experts/);
  });
});

describe('the PEFT files', () => {
  it.each([
    ['phi3', ['self_attn.qkv_proj', 'self_attn.o_proj', 'mlp.gate_up_proj', 'mlp.down_proj']],
    [
      'granite',
      [
        ...['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj'],
        ...['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'],
      ],
    ],
  ] as const)('of %s have the names of Hugging Face and come back', async (name, paths) => {
    await using trainer = await openChanged(path.join(folder, `${name}-f32.gguf`));
    const checkpoint = path.join(folder, `peft-${name}`);
    await trainer.save(checkpoint);
    const file = path.join(checkpoint, CHECKPOINT_FILES.peft);
    const found = Object.keys(readSafetensors(fs.readFileSync(file)).tensors);
    const wanted = paths.flatMap((path) =>
      ['A', 'B'].map((f) => `base_model.model.model.layers.0.${path}.lora_${f}.weight`),
    );
    expect(found.filter((key) => key.includes('layers.0.'))).toEqual(wanted);
    const before = trainer.adapter();
    await trainer.reset();
    await trainer.loadAdapter(file);
    expect(trainer.adapter()).toEqual(before);
  });
});
