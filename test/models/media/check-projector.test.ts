/** Damaged projector files are refused by the key or tensor at fault, before native code sees them; sound ones are not. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { GgufHeader, type GgufTensor, type GgufValue, readHeader } from '../../../src/engine/gguf/index.ts';
import { checkProjector } from '../../../src/models/media/index.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FILES = {
  ...Object.fromEntries(
    ['mlp', 'gemma3', 'idefics3', 'qwen2vl', 'qwen2a'].map((kind) => [
      kind,
      `test/golden/media/${kind}/mmproj.gguf`,
    ]),
  ),
  janus_pro: 'models/seeing/mmproj-onpolicy-seeing.gguf',
} as Record<string, string>;

type Change = {
  readonly values?: Readonly<Record<string, GgufValue | null>>;
  readonly tensors?: Readonly<Record<string, Partial<GgufTensor> | null>>;
};

/** A file's header with some values and tensors replaced, added, or (null) left out. */
async function changed(kind: string, { values = {}, tensors = {} }: Change): Promise<GgufHeader> {
  const header = await readHeader(path.join(ROOT, FILES[kind]!));
  const newValues = new Map(header.values);
  for (const [key, value] of Object.entries(values))
    if (value === null) newValues.delete(key);
    else newValues.set(key, value);
  const newTensors = new Map(header.tensors);
  const any = [...header.tensors.values()][0]!;
  for (const [name, tensor] of Object.entries(tensors))
    if (tensor === null) newTensors.delete(name);
    else newTensors.set(name, { ...any, ...header.tensors.get(name), ...tensor });
  return new GgufHeader('file', newValues, newTensors);
}

const u32 = (value: number): GgufValue => ({ type: 'u32', value });
const f32 = (value: number): GgufValue => ({ type: 'f32', value });
const text = (value: string): GgufValue => ({ type: 'string', value });
const list = (of: 'i32' | 'f32', numbers: readonly number[]): GgufValue => ({
  type: 'array',
  value: { of, count: numbers.length, numbers, texts: () => [] },
});
const typed = (name: string): Partial<GgufTensor> => ({ type: { name, blockElements: 1, blockBytes: 1 } });
const shaped = (...shape: number[]): Partial<GgufTensor> => ({
  shape: [...shape, 1, 1, 1, 1].slice(0, 4),
});

describe('projectors', () => {
  it.each(Object.keys(FILES))('%s is taken as it is', async (kind) => {
    checkProjector(await changed(kind, {}));
  });

  it('takes every projector of the shared data', async () => {
    const folder = path.join(ROOT, '../shared/data/media');
    const kinds = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    for (const file of kinds.map((kind) => path.join(folder, kind, 'mmproj.gguf')))
      if (fs.existsSync(file)) checkProjector(await readHeader(file));
  });

  const layer = 'v.blk.1.';
  it.each<[string, Change, string]>([
    ['gemma3', { values: { 'clip.vision.block_count': f32(2) } }, 'clip.vision.block_count: expected a value of type u32'],
    ['gemma3', { values: { 'clip.vision.block_count': u32(3) } }, 'the tensor v.blk.2.attn_q.weight'],
    ['gemma3', { values: { 'clip.vision.block_count': u32(0) } }, 'clip.vision.block_count: expected at least 1, got 0'],
    ['gemma3', { values: { 'clip.vision.embedding_length': null } }, 'clip.vision.embedding_length: expected a value, got none'],
    ['gemma3', { values: { 'clip.vision.attention.layer_norm_epsilon': f32(-1) } }, 'layer_norm_epsilon: expected a number from 0 to 1, got -1'],
    ['gemma3', { values: { 'clip.vision.attention.layer_norm_epsilon': f32(Number.NaN) } }, 'layer_norm_epsilon'],
    ['gemma3', { values: { 'clip.vision.attention.head_count': u32(0) } }, 'clip.vision.attention.head_count'],
    ['gemma3', { values: { 'clip.vision.attention.head_count_kv': u32(3) } }, 'clip.vision.attention.head_count_kv: expected a divisor of the 4 heads'],
    ['gemma3', { values: { 'clip.vision.projector.scale_factor': u32(5) } }, 'clip.vision.projector.scale_factor'],
    ['gemma3', { values: { 'clip.vision.image_size': u32(48) } }, 'the tensor v.position_embd.weight: expected the shape 64 x 36, got 64 x 144'],
    ['gemma3', { values: { 'clip.vision.image_mean': list('f32', [0.5]) } }, 'clip.vision.image_mean: expected three finite numbers, got 0.5'],
    ['gemma3', { values: { 'clip.vision.image_std': list('f32', [0.5, 0, 0.5]) } }, 'clip.vision.image_std: expected numbers above 0'],
    ['gemma3', { values: { 'clip.projector_type': text('qwen2a') } }, 'clip.projector_type: expected a kind of projector for vision, got qwen2a'],
    ['gemma3', { values: { 'clip.projector_type': text('gemma3nv') } }, 'the tensor v.conv_stem.conv.weight'],
    ['gemma3', { values: { 'clip.projector_type': text('gemma4v') } }, 'the tensor v.position_embd.weight: expected the shape 64 x 144 x 2'],
    ['gemma3', { values: { 'clip.has_vision_encoder': null } }, 'expected a projector'],
    ['gemma3', { tensors: { [`${layer}attn_q.weight`]: null } }, `the tensor ${layer}attn_q.weight: expected a value, got none`],
    ['gemma3', { tensors: { [`${layer}attn_q.weight`]: typed('i32') } }, `the tensor ${layer}attn_q.weight: expected numbers of a type that weights have, got i32`],
    ['gemma3', { tensors: { [`${layer}attn_q.weight`]: shaped(64, 32) } }, `the tensor ${layer}attn_q.weight: expected the shape 64 x 64, got 64 x 32`],
    ['gemma3', { tensors: { [`${layer}attn_q.bias`]: typed('f16') } }, `the tensor ${layer}attn_q.bias: expected numbers of type f32, got f16`],
    ['gemma3', { tensors: { [`${layer}attn_q_norm.weight`]: shaped(5) } }, `the tensor ${layer}attn_q_norm.weight`],
    ['gemma3', { tensors: { [`${layer}ffn_down.weight`]: shaped(128, 32) } }, `the tensor ${layer}ffn_down.weight: expected the shape 128 x 64`],
    ['gemma3', { tensors: { [`${layer}ffn_gate.weight`]: shaped(64, 32) } }, `the tensor ${layer}ffn_gate.weight: expected the shape 64 x 128`],
    ['gemma3', { tensors: { [`${layer}ffn_gate_exps.weight`]: shaped(64, 32, 2) } }, 'ffn_gate_exps.weight: expected none'],
    ['gemma3', { tensors: { 'v.patch_embd.weight': typed('bf16') } }, 'the tensor v.patch_embd.weight: expected numbers of type f32 or f16, got bf16'],
    ['gemma3', { tensors: { 'mm.input_projection.weight': shaped(64, 32) } }, 'the tensor mm.input_projection.weight: expected the shape 64 x 64'],
    ['idefics3', { values: { 'clip.vision.projector.scale_factor': null } }, 'clip.vision.projector.scale_factor: expected at least 2'],
    ['idefics3', { values: { 'clip.vision.preproc_image_size': u32(2 ** 30) } }, 'clip.vision.preproc_image_size: expected 96'],
    ['idefics3', { tensors: { 'mm.model.fc.weight': shaped(575, 64) } }, 'the tensor mm.model.fc.weight: expected the shape 576 x 64'],
    ['mlp', { values: { 'clip.vision.feature_layer': list('i32', [9]) } }, 'clip.vision.feature_layer: expected layers from 0 to 2, got 9'],
    ['mlp', { values: { 'clip.vision.feature_layer': list('i32', [0, 1]) } }, 'the tensor mm.0.weight: expected the shape 128 x 64'],
    ['mlp', { values: { 'clip.vision.image_grid_pinpoints': list('i32', [96]) } }, 'clip.vision.image_grid_pinpoints: expected pairs'],
    ['mlp', { values: { 'clip.vision.image_grid_pinpoints': list('i32', [96, 960_000]) } }, 'clip.vision.image_grid_pinpoints'],
    ['mlp', { tensors: { 'v.class_embd': shaped(64) } }, 'the tensor v.position_embd.weight: expected the shape 64 x 145'],
    ['mlp', { tensors: { 'mm.2.weight': null } }, 'the tensor mm.2.weight: expected a value, got none'],
    ['qwen2vl', { values: { 'clip.vision.n_wa_pattern': u32(2) } }, 'clip.vision.n_wa_pattern'],
    ['qwen2vl', { values: { 'clip.vision.spatial_merge_size': u32(3) } }, 'clip.vision.spatial_merge_size: expected 2, got 3'],
    ['qwen2vl', { values: { 'clip.vision.attention.head_count': u32(32) } }, 'expected heads of 4 numbers or a multiple, got 2'],
    ['qwen2vl', { values: { 'clip.projector_type': text('qwen3vl_merger') } }, 'the tensor v.patch_embd.bias'],
    ['qwen2vl', { values: { 'clip.projector_type': text('phi4') } }, 'the tensor v.position_embd.weight'],
    ['qwen2vl', { tensors: { [`${layer}attn_q.bias`]: null } }, `the tensor ${layer}attn_q.bias: expected a value, got none`],
    ['qwen2vl', { tensors: { 'v.patch_embd.weight.1': null } }, 'the tensor v.patch_embd.weight.1'],
    ['qwen2a', { values: { 'clip.audio.num_mel_bins': u32(128) } }, 'the tensor a.conv1d.1.weight: expected the shape 3 x 128 x 64'],
    ['qwen2a', { tensors: { 'a.blk.0.attn_k.bias': shaped(64) } }, 'the tensor a.blk.0.attn_k.bias: expected none'],
    ['qwen2a', { tensors: { 'a.blk.0.ln1.weight': null } }, 'the tensor a.blk.0.ln1.weight'],
    ['qwen2a', { tensors: { 'a.position_embd.weight': shaped(64, 1499) } }, 'the tensor a.position_embd.weight: expected 1500 positions, got 1499'],
    ['janus_pro', { tensors: { 'mm.1.bias': null } }, 'the tensor mm.1.bias: expected a value, got none'],
  ])('%s with %j is refused', async (kind, change, message) => {
    const header = await changed(kind, change);
    expect(() => checkProjector(header)).toThrow(expect.objectContaining({ code: 'MODEL_INVALID', message: expect.stringContaining(message) }));
    expect(() => checkProjector(header)).toThrow(/^file: /);
  }); // biome-ignore format: a case is one row

  it.each<[string, Change]>([
    ['gemma3', { values: { 'clip.vision.projector.scale_factor': u32(4) } }],
    ['gemma3', { tensors: { 'v.blk.0.attn_q.bias': null, 'v.blk.0.ln1.bias': null, 'v.post_ln.weight': null } }],
    ['gemma3', { tensors: { 'v.blk.0.ffn_up.weight': shaped(128, 64), 'v.blk.0.ffn_up.bias': shaped(64), 'v.blk.0.ffn_down.weight': shaped(64, 128), 'v.blk.0.ffn_down.bias': shaped(128) } }],
    ['idefics3', { values: { 'clip.vision.preproc_image_size': null } }],
    ['mlp', { values: { 'clip.vision.feature_layer': list('i32', [1]) } }],
    ['mlp', { tensors: { 'v.class_embd': shaped(64), 'v.position_embd.weight': shaped(64, 145) } }],
    ['mlp', { values: { 'clip.vision.image_grid_pinpoints': list('i32', [96, 192, 288, 96]) } }],
    ['mlp', { tensors: { 'mm.1.weight': shaped(64), 'mm.1.bias': shaped(64), 'mm.3.weight': shaped(64, 64), 'mm.3.bias': shaped(64), 'mm.4.weight': shaped(64), 'mm.4.bias': shaped(64), 'mm.2.weight': null } }],
    ['qwen2vl', { values: { 'clip.projector_type': text('qwen2.5vl_merger'), 'clip.vision.n_wa_pattern': u32(2) } }],
    ['qwen2vl', { values: { 'clip.vision.feed_forward_length': u32(0) } }],
    ['qwen2a', { values: { 'clip.projector_type': text('qwen2.5o') } }],
    ['mlp', { values: { 'clip.projector_type': text('internvl') } }],
  ])('%s with %j is taken: files of its kind are published so, or nothing is known of it', async (kind, change) => {
    checkProjector(await changed(kind, change));
  }); // biome-ignore format: a case is one row
});
