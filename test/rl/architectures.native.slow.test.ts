/** Each architecture that can be trained: the engine's log-probabilities, and gradients against finite differences. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import { readSafetensors } from '../../src/models/lora/safetensors.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openFullTrainer } from '../../src/rl/full-trainer.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { architectureFiles } from '../architectures/files.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, type TinyModel, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-architectures-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Cells of the engine that computes log-probabilities. */
const CELLS = 256;
/** Factors for texts up to so many tokens, and others for longer ones. */
const longRope = (architecture: 'phi3' | 'llama', original: number): Omit<TinyModel, 'type'> => ({
  architecture,
  headSize: 16,
  metadata: [
    [`${architecture}.rope.scaling.type`, 'longrope'],
    [`${architecture}.rope.scaling.original_context_length`, original],
    [`${architecture}.rope.scaling.attn_factor`, { float: 1.2 }],
  ],
  tensors: ['rope_factors_long.weight', 'rope_factors_short.weight'],
});

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
  ['phi3 with LongRoPE, long', longRope('phi3', 128)],
  ['phi3 with LongRoPE, short', longRope('phi3', 512)],
  ['llama with LongRoPE, long', longRope('llama', 128)],
];
/** Architectures whose tiny files are generated from the engine's list of tensors (scripts/make/architectures). */
const GENERATED = [
  'qwen35',
  'qwen35moe',
  'qwen3next',
  'gpt-oss',
  'glm4',
  'glm4moe',
  'olmo2',
  'exaone4',
  'cohere2',
  'mistral3',
  'ernie4_5',
  'hunyuan-dense',
  'seed_oss',
  'lfm2',
  'gemma3n',
  'gemma3n-short',
  'gemma4',
  'gemma4-moe',
];
const F32_TOLERANCE: Record<string, number> = {
  // As far as the engine is from itself, with the tokens in one batch and one by one.
  qwen35: 3e-5,
  qwen35moe: 3e-5,
  // The engine's GELU is a table of 16-bit numbers: a rounding of what goes in may be a step of it.
  'gemma3n-short': 5e-3,
  gemma4: 5e-3,
  'gemma4-moe': 5e-3,
};
/**
 * 22 layers with several streams: the engine with other matmul kernels is 0.05 from itself in F32, 1.5 in Q8_0, and a step of any size
 * bends the loss by more than it moves it. Gradients are those of the short one, of shared keys those of Gemma 4.
 */
const LONG = 'gemma3n';
const generated: Record<string, Record<string, string>> = {};

type Row = {
  readonly name: string;
  /** Types of its weights, with how far log-probabilities may be from the engine's, and how close probabilities must be to them. */
  readonly types: readonly (readonly [string, number, number])[];
  /** `auto`: the kernels that the trainer has, too. The engine's own round in another order. */
  readonly kernels: 'auto' | 'plain';
  readonly hasGradients: boolean;
  file(type: string): Promise<string>;
};
const ROWS: readonly Row[] = [
  ...MODELS.map(
    ([name, given]): Row => ({
      name,
      types: [
        ['f32', 1e-4, 0.9999],
        ['f16', 2e-2, 0.9999],
      ],
      kernels: 'plain',
      hasGradients: true,
      async file(type) {
        const file = path.join(folder, `${name}-${type}.gguf`);
        if (!fs.existsSync(file)) await writeTinyModel(file, { ...SMALL, ...given, type });
        return file;
      },
    }),
  ),
  ...GENERATED.map(
    (name): Row => ({
      name,
      types:
        name === LONG
          ? [['f32', 0.15, 0.999]]
          : [
              ['f32', F32_TOLERANCE[name] ?? 1.5e-5, 0.9999],
              ['q8_0', 0.3, 0.999], // one activation that is rounded to the next step shows in all tokens after it
            ],
      kernels: 'auto',
      hasGradients: name !== LONG,
      async file(type) {
        generated[type] ??= architectureFiles(GENERATED, type);
        return generated[type][name]!;
      },
    }),
  ),
];

const normal = normals(19);
/** Longer than the windows of generated models. */
const row = packSequence(Int32Array.from({ length: 56 }, (_, i) => (i * 53 + (i % 7)) % 250));
const gradLogprobs = Float32Array.from(row.targetTokens, () => normal() / 32);

async function openChanged(model: string, arithmetic: 'engine' | 'exact' = 'engine'): Promise<Trainer> {
  const trainer = await openTrainer({
    model,
    rank: 4,
    alpha: 8,
    gpu: false,
    threads: 1,
    contextSize: CELLS,
    arithmetic,
  });
  await trainer.loadAdapter(randomAdapter(trainer, normals(23)));
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

describe.each(ROWS)('$name', ({ name, types, kernels, hasGradients, file }) => {
  it.each(types)(
    "has the engine's log-probabilities in %s, with an adapter and without",
    async (type, tolerance, closeness) => {
      const model = await file(type);
      await using trainer = await openChanged(model);
      const checkpoint = path.join(folder, `${name}-${type}`);
      await trainer.save(checkpoint);
      const adapters = { on: path.join(checkpoint, CHECKPOINT_FILES.gguf), off: '' };
      const scores: Float32Array[] = [];
      for (const [state, adapter] of Object.entries(adapters)) {
        const engine = await engineScores(model, row.tokens, adapter, kernels);
        const { logprobs } = await trainer.forward(row, { gradients: false, adapterOff: state === 'off' });
        const apart = Math.max(...logprobs.map((value, i) => Math.abs(value - engine[i]!)));
        const corr = correlation(logprobs, engine);
        process.stdout.write(
          `${name}, ${type}, adapter ${state}: probs_corr ${corr.toFixed(7)}, most apart ${apart.toExponential(1)}\n`,
        );
        expect(apart).toBeLessThan(tolerance);
        expect(corr).toBeGreaterThan(closeness);
        scores.push(engine);
      }
      expect(Math.max(...scores[0]!.map((value, i) => Math.abs(value - scores[1]![i]!)))).toBeGreaterThan(
        0.02,
      );
    },
  );

  if (!hasGradients) return;
  it('has the gradients that finite differences give', async () => {
    await using trainer = await openChanged(await file('f32'), 'exact');
    const weights = trainer.adapter();
    await trainer.forward(row);
    await trainer.backward(gradLogprobs);
    const gradients = trainer.gradients();
    for (const module of Object.keys(weights))
      for (const factor of ['a', 'b'] as const) {
        const gradient = gradients[module]![factor];
        // Along the gradient itself: every number of the factor counts, and none drowns in rounding.
        const length = Math.hypot(...gradient);
        const at = async (step: number): Promise<number> => {
          const moved = weights[module]![factor].map((value, i) => value + (step * gradient[i]!) / length);
          await trainer.loadAdapter({ [module]: { ...weights[module]!, [factor]: moved } } as AdapterWeights);
          const { logprobs } = await trainer.forward(row, { gradients: false });
          return logprobs.reduce((sum, value, i) => sum + value * gradLogprobs[i]!, 0);
        };
        const errors: number[] = [];
        // A large step could move a token to other experts, with a small one much is rounding.
        for (const step of [0.002, 0.006, 0.0005, 0.0002]) {
          if (errors.some((error) => error < 0.02)) break;
          const difference = ((await at(step)) - (await at(-step))) / (2 * step);
          errors.push(Math.abs(difference - length) / length);
        }
        await trainer.loadAdapter({ [module]: weights[module]! });
        expect(Math.min(...errors), `${module}.${factor}`).toBeLessThan(0.02);
      }
  });
});

/** Models that are refused before training begins, and the expected error. */
const REFUSED: readonly (readonly [string, Omit<TinyModel, 'type'>, RegExp])[] = [
  ['a recurrent architecture', { architecture: 'mamba2' as 'llama' }, /this model's is "mamba2"/],
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

  it('has no adapters of experts unless they are named, and not all its weights are trained', async () => {
    const model = path.join(folder, 'experts.gguf');
    await writeTinyModel(model, { ...SMALL, architecture: 'qwen3moe', experts: 4, type: 'f32' });
    await using trainer = await openTrainer({ model, gpu: false });
    expect(new Set(trainer.info.modules.map(({ name }) => name.replace(/.*\./, '')))).toEqual(
      new Set(['attn_q', 'attn_k', 'attn_v', 'attn_output']),
    );
    await expect(openTrainer({ model, gpu: false, modules: ['ffn_gate_up_exps'] })).rejects.toThrow(
      /none of the names/,
    );
    await expect(openFullTrainer({ model })).rejects.toThrow(/all weights of a model with experts/);
  });
});

describe('the PEFT files', () => {
  it.each([
    [
      'qwen35',
      [
        ...['in_proj_qkv', 'in_proj_z', 'in_proj_b', 'in_proj_a', 'out_proj'].map(
          (name) => `linear_attn.${name}`,
        ),
        ...['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'],
      ],
    ],
    [
      'qwen3next',
      [
        ...['in_proj_qkvz', 'in_proj_ba', 'out_proj'].map((name) => `linear_attn.${name}`),
        ...['gate_proj', 'up_proj', 'down_proj'].map((name) => `mlp.shared_expert.${name}`),
      ],
    ],
    ['lfm2', ['conv.in_proj', 'conv.out_proj', 'feed_forward.w1', 'feed_forward.w3', 'feed_forward.w2']],
    ['phi3', ['self_attn.qkv_proj', 'self_attn.o_proj', 'mlp.gate_up_proj', 'mlp.down_proj']],
    [
      'granite',
      [
        ...['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj'],
        ...['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'],
      ],
    ],
  ] as const)('of %s have the names of Hugging Face and come back', async (name, paths) => {
    const { file: model } = ROWS.find((row) => row.name === name)!;
    await using trainer = await openChanged(await model('f32'));
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
