/** Models with their adapters written to the disk: what the files say, against the model and its adapters in the engine. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type ModelExport, type Runtime } from '../../src/index.ts';
import { readSafetensors } from '../../src/models/lora/index.ts';
import { pickRows, rowPlaces } from '../../src/models/lora/row-order.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openFullTrainer } from '../../src/rl/full-trainer.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals, type TinyArchitecture, type TinyModel, writeTinyModel } from '../rl/tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-export-'));
const at = (name: string): string => path.join(folder, name);
const normal = normals(23);
const tokens = Int32Array.from({ length: 24 }, (_, i) => (i * 53 + (i % 7)) % 250);

/** Rows of whole blocks of the K-quants. */
const SIZES = { width: 256, hidden: 256, heads: 4, kvHeads: 2, headSize: 64, layers: 1, vocabularySize: 256 };

/** A model and two adapters of different ranks, in folders as training leaves them. */
async function make(name: string, given: Pick<TinyModel, 'architecture' | 'type'> & Partial<TinyModel>) {
  const model = at(`${name}.gguf`);
  await writeTinyModel(model, { ...SIZES, ...given });
  for (const [i, rank] of [4, 2].entries()) {
    await using trainer = await openTrainer({ model, rank, alpha: 8, gpu: false, threads: 1 });
    await trainer.loadAdapter(randomAdapter(trainer, normal));
    await trainer.save(at(`${name}-${i}`));
  }
  return model;
}

const score = (model: string, adapter = ''): Promise<Float32Array> => engineScores(model, tokens, adapter);
const gguf = (name: string): string => path.join(at(name), CHECKPOINT_FILES.gguf);

function mostApart(left: Float32Array, right: Float32Array): number {
  return left.reduce((most, value, i) => Math.max(most, Math.abs(value - right[i]!)), 0);
}

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({
    home: at('home'),
    gpu: false,
    threads: 1,
    models: { named: { path: at('qwen3.gguf'), adapters: [{ file: gguf('qwen3-0') }] } },
  });
  await make('qwen3', { architecture: 'qwen3', type: 'f32' });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

/** How far log-probabilities may be from those of the model with its adapter beside it. */
const TYPES: readonly (readonly [NonNullable<Parameters<Runtime['models']['export']>[0]['type']>, number])[] =
  [
    ['f32', 1e-4],
    ['bf16', 4e-2],
    ['f16', 5e-3],
    ['q8_0', 0.12],
    ['q6_k', 0.2],
    ['q5_k_m', 0.4],
    ['q4_k_m', 0.9],
    ['q4_0', 1.1],
    ['iq4_nl', 1.1],
  ];

describe('a merged GGUF file', () => {
  it.each(TYPES)('in %s answers as the model with its adapter beside it', async (type, tolerance) => {
    const to = at(`merged-${type}.gguf`);
    const adapters = [{ file: gguf('qwen3-0') }];
    const { bytes, ...made } = await runtime.models.export({ model: at('qwen3.gguf'), adapters, to, type });
    expect(made).toEqual({ path: to, format: 'gguf', adapters: 1 });
    expect(bytes).toBe(fs.statSync(to).size);
    const apart = mostApart(await score(to), await score(at('qwen3.gguf'), gguf('qwen3-0')));
    process.stdout.write(`${type}: most apart ${apart.toExponential(1)}, ${bytes} bytes\n`);
    expect(apart).toBeLessThan(tolerance);
  });

  it.each<readonly [string, TinyArchitecture, Partial<TinyModel>, string, number]>([
    ['phi3', 'phi3', {}, 'f32', 1e-4],
    ['qwen3moe', 'qwen3moe', { experts: 4 }, 'f32', 1e-4],
    ['granite in F16', 'granite', {}, 'f16', 2e-2],
    ['llama in Q8_0', 'llama', {}, 'q8_0', 0.3],
    ['gemma2 in Q4_K', 'gemma2', { isTied: true }, 'q4_K', 1.5],
  ])('keeps the types of the weights: %s', async (name, architecture, more, type, tolerance) => {
    const model = await make(name, { architecture, type, ...more });
    const to = at(`${name}-merged.gguf`);
    const adapters = [{ file: gguf(`${name}-0`) }];
    await runtime.models.export({ model, adapters, to });
    expect(fs.statSync(to).size).toBe(fs.statSync(model).size);
    expect(mostApart(await score(to), await score(model, gguf(`${name}-0`)))).toBeLessThan(tolerance);
    await runtime.models.export({ model, to: at(`${name}-copy.gguf`) });
    expect(mostApart(await score(at(`${name}-copy.gguf`)), await score(model))).toBe(0);
  });

  it('holds several adapters with their scales, of names and of checkpoints', async () => {
    const base = at('qwen3.gguf');
    const registered = await runtime.models.create({ base_model: base, name: 'registered' });
    const to = at('two.gguf');
    const made: ModelExport = await runtime.models.export({
      model: 'named',
      adapters: [
        { file: at('qwen3-1'), scale: -0.5 },
        { model: registered.name! },
        { file: gguf('qwen3-1'), scale: 0 },
      ],
      to,
    });
    expect(made.adapters).toBe(2);
    const once = at('once.gguf');
    await runtime.models.export({
      model: base,
      adapters: [{ file: gguf('qwen3-1'), scale: -0.5 }],
      to: once,
    });
    expect(mostApart(await score(to), await score(once, gguf('qwen3-0')))).toBeLessThan(1e-4);
  });
});

describe('a PEFT folder', () => {
  it.each<readonly [string, TinyArchitecture]>([
    ['qwen3', 'qwen3'],
    ['llama', 'llama'],
    ['phi3', 'phi3'],
  ])('holds the adapters of a %s model as one', async (name, architecture) => {
    const model = fs.existsSync(at(`${name}.gguf`))
      ? at(`${name}.gguf`)
      : await make(name, { architecture, type: 'f32' });
    const adapters = [{ file: gguf(`${name}-0`), scale: 0.5 }, { file: at(`${name}-1`) }];
    const to = at(`${name}-peft`);
    const made = await runtime.models.export({ model, adapters, to, format: 'peft' });
    expect(made).toMatchObject({ path: to, format: 'peft', adapters: 2 });
    expect(fs.readdirSync(to).sort()).toEqual([CHECKPOINT_FILES.peftConfig, CHECKPOINT_FILES.peft].sort());
    const config = JSON.parse(fs.readFileSync(path.join(to, CHECKPOINT_FILES.peftConfig), 'utf8'));
    expect(config).toMatchObject({ r: 6, lora_alpha: 6, use_rslora: false, use_dora: false });
    const { tensors } = readSafetensors(fs.readFileSync(path.join(to, CHECKPOINT_FILES.peft)));
    expect(Object.keys(tensors)[0]).toMatch(/^base_model\.model\.model\.layers\.0\.self_attn\./);
    const [both, one] = [at(`${name}-both.gguf`), at(`${name}-one.gguf`)];
    await runtime.models.export({ model, adapters, to: both });
    await runtime.models.export({ model, adapters: [{ file: to }], to: one });
    expect(mostApart(await score(both), await score(one))).toBeLessThan(1e-4);
  });
});

describe('a safetensors file', () => {
  it.each<readonly [TinyArchitecture, string, string]>([
    ['llama', 'blk.0.attn_q.weight', 'model.layers.0.self_attn.q_proj.weight'],
    ['granite', 'blk.0.attn_k.weight', 'model.layers.0.self_attn.k_proj.weight'],
    ['phi3', 'blk.0.ffn_up.weight', 'model.layers.0.mlp.gate_up_proj.weight'],
    ['gemma2', 'blk.0.ffn_norm.weight', 'model.layers.0.pre_feedforward_layernorm.weight'],
    ['qwen3', 'output.weight', 'lm_head.weight'],
  ])('holds the merged weights of a %s model', async (architecture, from, name) => {
    const model = await make(`plain-${architecture}`, { architecture, type: 'f32' });
    const adapters = [{ file: gguf(`plain-${architecture}-0`) }];
    const [merged, to] = [at(`plain-${architecture}-merged.gguf`), at(`plain-${architecture}.safetensors`)];
    await runtime.models.export({ model, adapters, to: merged });
    const made = await runtime.models.export({ model, adapters, to, format: 'safetensors' });
    expect(made).toMatchObject({ format: 'safetensors', bytes: fs.statSync(to).size });
    const { tensors } = readSafetensors(fs.readFileSync(to));
    await using reader = await openFullTrainer({ model: merged, threads: 1 });
    expect(Object.keys(tensors).length).toBe(reader.parameters.length);
    const expected = reader.weight(from);
    const kind = from.replace(/^blk\.0\.|\.weight$/g, '');
    const rows = rowPlaces(kind, expected.length / SIZES.width, {
      architecture,
      headCount: 4,
      kvHeadCount: 2,
    });
    const found = tensors[name]!;
    expect(found.shape.reduce((product, size) => product * size, 1)).toBe(expected.length);
    if (architecture === 'gemma2')
      expect(
        mostApart(
          found.values,
          expected.map((value) => value - 1),
        ),
      ).toBeLessThan(1e-6);
    else expect(found.values).toEqual(pickRows(expected, SIZES.width, rows));
    const half = at(`plain-${architecture}-half.safetensors`);
    const small = await runtime.models.export({
      model,
      adapters,
      to: half,
      format: 'safetensors',
      type: 'bf16',
    });
    expect(small.bytes).toBeLessThan(0.52 * made.bytes);
    const rounded = readSafetensors(fs.readFileSync(half)).tensors[name]!.values;
    expect(mostApart(rounded, found.values)).toBeLessThan(0.02);
  });

  it('lies in a folder with its configuration, unless the path is that of a file', async () => {
    const model = await make('plain-folder', { architecture: 'qwen3', type: 'f32' });
    const to = at('plain-folder');
    const made = await runtime.models.export({ model, to, format: 'safetensors', type: 'f16' });
    expect(fs.readdirSync(to).sort()).toEqual(['config.json', 'model.safetensors']);
    const sizes = fs.readdirSync(to).map((name) => fs.statSync(path.join(to, name)).size);
    expect(made.bytes).toBe(sizes[0]! + sizes[1]!);
    const config = JSON.parse(fs.readFileSync(path.join(to, 'config.json'), 'utf8'));
    expect(config).toMatchObject({ model_type: 'qwen3', hidden_size: SIZES.width, torch_dtype: 'float16' });
  });
});

describe('what cannot be written', () => {
  const model = at('qwen3.gguf');
  const file = gguf('qwen3-0');
  const inside = (): string[] => fs.readdirSync(folder).sort();

  it.each<readonly [string, Record<string, unknown>, string, RegExp]>([
    [
      'a target that exists',
      { model, to: model },
      'CONFLICT',
      /^to: .* exists already; overwrite replaces it/,
    ],
    ['a folder that is not there', { model, to: at('none/x.gguf') }, 'INVALID_REQUEST', /to/],
    ['an unknown type', { model, to: at('x'), type: 'q4_k' }, 'INVALID_REQUEST', /type/],
    ['an unknown field', { model, to: at('x'), kind: 1 }, 'INVALID_REQUEST', /kind/],
    ['a model that is not there', { model: at('none.gguf'), to: at('x') }, 'MODEL_NOT_FOUND', /model/],
    ['PEFT without adapters', { model, to: at('x'), format: 'peft' }, 'INVALID_REQUEST', /format/],
    [
      'PEFT with a type',
      { model, to: at('x'), format: 'peft', type: 'f16', adapters: [{ file }] },
      'INVALID_REQUEST',
      /type/,
    ],
    [
      'safetensors in Q8_0',
      { model, to: at('x'), format: 'safetensors', type: 'q8_0' },
      'INVALID_REQUEST',
      /type/,
    ],
    ['an adapter without a file', { model, to: at('x'), adapters: [{}] }, 'INVALID_REQUEST', /adapters\.0/],
    [
      'an adapter of another model',
      { model, to: at('x'), adapters: [{ file }, { file: model }] },
      'MODEL_INVALID',
      /adapters\.1\.file: .*expected an adapter/,
    ],
  ])('%s is an error that leaves nothing behind', async (_, request, code, message) => {
    const before = inside();
    await expect(
      runtime.models.export(request as unknown as Parameters<Runtime['models']['export']>[0]),
    ).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(inside()).toEqual(before);
  });

  it('an abort leaves what was there', async () => {
    const to = at('kept.gguf');
    fs.writeFileSync(to, 'as it was');
    const before = inside();
    const stop = new AbortController();
    const running = runtime.models.export(
      { model, to, type: 'q8_0', overwrite: true },
      { signal: stop.signal },
    );
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    expect(inside()).toEqual(before);
    expect(fs.readFileSync(to, 'utf8')).toBe('as it was');
    await runtime.models.export({ model, to, overwrite: true });
    expect(mostApart(await score(to), await score(model))).toBe(0);
  });
});
