/** Architectures beside a forward pass of Python in float64 (test/golden/rl/architectures.py), which knows nothing of rows, chunks or kernels. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { architectureFiles } from '../architectures/files.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { packSequence, type TinyModel, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-golden-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

type Golden = {
  readonly logprobs: readonly number[];
  /** Derivatives of the sum over targets of weight x log-probability, along a drawn direction of each factor. */
  readonly derivatives: Readonly<Record<string, number>>;
};
const goldens = JSON.parse(
  fs.readFileSync(path.resolve(import.meta.dirname, '../golden/rl/architectures.json'), 'utf8'),
) as Record<string, Golden>;

/** In the order in which Python draws their numbers. */
const MODULES = [
  ...['attn_q', 'attn_k', 'attn_v', 'attn_qkv', 'attn_gate', 'ssm_ba', 'attn_output', 'ssm_out'],
  ...['ffn_gate', 'ffn_up', 'ffn_down', 'ffn_gate_shexp', 'ffn_up_shexp', 'ffn_down_shexp'],
  ...['ffn_gate_exps', 'ffn_up_exps', 'ffn_down_exps', 'ffn_gate_up_exps'],
  ...['inp_gate', 'proj', 'laurel_l', 'laurel_r'],
];
const RANK = 4;
const PHI3: TinyModel = {
  architecture: 'phi3',
  type: 'f32',
  ...{ width: 64, hidden: 96, heads: 4, kvHeads: 2, headSize: 16, layers: 2, vocabularySize: 256 },
  metadata: [
    ['phi3.rope.scaling.type', 'longrope'],
    ['phi3.rope.scaling.original_context_length', 128],
    ['phi3.rope.scaling.attn_factor', { float: 1.2 }],
  ],
  tensors: ['rope_factors_long.weight', 'rope_factors_short.weight'],
};

async function fileOf(name: string): Promise<string> {
  if (name !== 'phi3-long') return architectureFiles([name])[name]!;
  const file = path.join(process.env['ONPOLICY_GOLDEN_FOLDER'] ?? folder, 'phi3-long.gguf');
  await writeTinyModel(file, PHI3);
  return file;
}

/** Numbers from -1 to 1, as Python draws them. */
function drawn(count: number, seed: number): Float64Array {
  let state = seed;
  return Float64Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 31 - 1;
  });
}

describe.each(Object.entries(goldens))('%s', (name, { logprobs, derivatives }) => {
  it('has the log-probabilities and gradients of float64', async () => {
    const model = await fileOf(name);
    const options = { model, rank: RANK, alpha: 8, gpu: false as const, threads: 1, contextSize: 256 };
    await using trainer = await openTrainer({ ...options, modules: MODULES, arithmetic: 'exact' });
    const layerOf = (name: string) => Number(name.split('.')[1]);
    const kindOf = (name: string) => MODULES.indexOf(name.split('.').slice(2).join('.'));
    const modules = trainer.info.modules.toSorted(
      (a, b) => layerOf(a.name) - layerOf(b.name) || kindOf(a.name) - kindOf(b.name),
    );
    const floats = (count: number, seed: number) =>
      Float32Array.from(drawn(count, seed), (value) => Math.fround(value) / 16);
    const weights: AdapterWeights = Object.fromEntries(
      modules.map(({ name, in: width, out, experts }, i) => [
        name,
        {
          a: floats(experts * RANK * width, 1000 + 2 * i),
          b: floats(experts * out * RANK, 1001 + 2 * i),
        },
      ]),
    );
    await trainer.loadAdapter(weights);
    const count = logprobs.length;
    const row = packSequence(Int32Array.from({ length: count + 1 }, (_, i) => (i * 53 + (i % 7)) % 250));
    const { logprobs: own } = await trainer.forward(row, { gradients: false });
    const apart = Math.max(...own.map((value, i) => Math.abs(value - logprobs[i]!)));
    expect(apart, 'if the model is another one, make the numbers again').toBeLessThan(1e-4);
    const gradients = await gradientsOfRow(
      trainer,
      row,
      Float32Array.from(drawn(count, 1), (weight) => weight / 8),
    );
    let worst = 0;
    expect(Object.keys(derivatives)).toHaveLength(2 * modules.length);
    for (const [i, { name: module }] of modules.entries())
      for (const [place, factor] of (['a', 'b'] as const).entries()) {
        const gradient = gradients[module]![factor];
        const direction = drawn(gradient.length, 5000 + 2 * i + place);
        const along = gradient.reduce((sum, value, at) => sum + value * direction[at]!, 0);
        const scale = Math.hypot(...gradient); // what a direction like this gives on average
        const error = Math.abs(along - derivatives[`${module}.${factor}`]!) / scale;
        worst = Math.max(worst, error);
        expect(error, `${module}.${factor}`).toBeLessThan(1e-4);
      }
    process.stdout.write(`${name}: ${apart.toExponential(1)} apart, gradients ${worst.toExponential(1)}\n`);
  });
});
