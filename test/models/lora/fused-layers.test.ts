import { expect, it } from 'vitest';
import { fuse, fusedNames, split } from '../../../src/models/lora/fused-layers.ts';
import { fromPeft } from '../../../src/models/lora/peft-adapter.ts';

const MODEL = { architecture: 'qwen3next', rank: 1, deltaNet: { keyHeads: 2, valueHeads: 4 } };
/** Rows q0 q1 k0 k1 v0 v1 v2 v3, and z0 z1 z2 z3. */
const WEIGHTS = {
  'blk.0.attn_qkv': { a: Float32Array.of(1, 2), b: Float32Array.of(10, 11, 20, 21, 30, 31, 32, 33) },
  'blk.0.attn_gate': { a: Float32Array.of(3, 4), b: Float32Array.of(40, 41, 42, 43) },
  'blk.0.ssm_out': { a: Float32Array.of(5), b: Float32Array.of(6) },
};

it('is one adapter in the order of rows of Hugging Face', () => {
  const fused = fuse(WEIGHTS, MODEL);
  expect(Object.keys(fused)).toEqual(['blk.0.ssm_in', 'blk.0.ssm_out']);
  expect(fusedNames(Object.keys(WEIGHTS), MODEL)).toEqual(Object.keys(fused));
  const { a, b } = fused['blk.0.ssm_in']!;
  expect([...a]).toEqual([1, 2, 3, 4]);
  // For each head of keys: its query, its key, its two values, their two gates.
  const qkv = [10, 20, 30, 31, 0, 0, 11, 21, 32, 33, 0, 0];
  const gates = [0, 0, 0, 0, 40, 41, 0, 0, 0, 0, 42, 43];
  expect([...b]).toEqual(qkv.flatMap((value, row) => [value, gates[row]]));
  expect(split('blk.0', { a, b }, MODEL, 2)).toEqual({
    'blk.0.attn_qkv': WEIGHTS['blk.0.attn_qkv'],
    'blk.0.attn_gate': WEIGHTS['blk.0.attn_gate'],
  });
});

it('leaves out what was not trained, and other architectures as they are', () => {
  const { 'blk.0.attn_gate': gate } = WEIGHTS;
  const { 'blk.0.ssm_in': fused } = fuse({ 'blk.0.attn_gate': gate }, MODEL);
  expect(split('blk.0', fused!, MODEL, 2)).toEqual({ 'blk.0.attn_gate': gate });
  expect(fuse(WEIGHTS, { ...MODEL, architecture: 'qwen35' })).toEqual(WEIGHTS);
});

it("is split where one factor is read by both, as in Python's adapters", () => {
  const b = Float32Array.of(10, 20, 30, 31, 40, 41, 11, 21, 32, 33, 42, 43);
  const parts = split('blk.0', { a: Float32Array.of(1, 2), b }, MODEL, 1)!;
  expect(parts['blk.0.attn_qkv']).toEqual(WEIGHTS['blk.0.attn_qkv']);
  expect(parts['blk.0.attn_gate']).toEqual({ a: Float32Array.of(1, 2), b: WEIGHTS['blk.0.attn_gate'].b });
});

it('is not split where one part reads what the other has made', () => {
  const b = new Float32Array(24).fill(1);
  expect(split('blk.0', { a: Float32Array.of(1, 2, 3, 4), b }, MODEL, 2)).toBeNull();
});

it.each([
  [1, 2],
  [2, 1],
])('with a factor of rank %i and one of rank %i is refused', (rankA, rankB) => {
  const path = 'base_model.model.model.layers.0.linear_attn.in_proj_qkvz.lora_';
  const tensors = {
    [`${path}A.weight`]: { shape: [rankA, 2], values: new Float32Array(rankA * 2) },
    [`${path}B.weight`]: { shape: [12, rankB], values: new Float32Array(12 * rankB) },
  };
  const model = { ...MODEL, layerCount: 1, headCount: 2, kvHeadCount: 2, alpha: 1 };
  expect(() => fromPeft({ tensors, metadata: {} }, model)).toThrow(
    `${path}B.weight has rank ${rankB}, the other factor of its layer ${rankA}`,
  );
});
