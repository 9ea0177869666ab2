/** Adapters of experts: side by side they add what they add together, expert by expert; and who has names for them. */
import { expect, it } from 'vitest';
import { expertOf, expertPath, unnamedModule } from '../../../src/models/lora/expert-names.ts';
import { sumAdapters } from '../../../src/models/lora/sum-adapters.ts';
import { normals } from '../../rl/tiny-model.ts';

const [EXPERTS, WIDTH, ROWS] = [3, 4, 5];
const NAME = 'blk.0.ffn_up_exps';

/** (experts, rows, width) what factors of a rank add, times `scale`. */
function product(a: Float32Array, b: Float32Array, rank: number, scale: number): number[] {
  const result: number[] = [];
  for (let expert = 0; expert < EXPERTS; expert++)
    for (let row = 0; row < ROWS; row++)
      for (let column = 0; column < WIDTH; column++) {
        let sum = 0;
        for (let r = 0; r < rank; r++)
          sum += b[(expert * ROWS + row) * rank + r]! * a[(expert * rank + r) * WIDTH + column]!;
        result.push(scale * sum);
      }
  return result;
}

it('sums adapters of different ranks', () => {
  const normal = normals(5);
  const drawn = (count: number) => Float32Array.from({ length: count }, normal);
  const given = [1, 2].map((rank) => ({
    rank,
    alpha: 3,
    gain: rank / 2,
    weights: {
      [NAME]: { a: drawn(EXPERTS * rank * WIDTH), b: drawn(EXPERTS * ROWS * rank), experts: EXPERTS },
    },
  }));
  const { rank, weights } = sumAdapters(given, () => WIDTH);
  const { a, b, experts } = weights[NAME]!;
  expect([rank, experts]).toEqual([3, EXPERTS]);
  const parts = given.map((one) =>
    product(one.weights[NAME]!.a, one.weights[NAME]!.b, one.rank, (one.gain * one.alpha) / one.rank),
  );
  const sum = product(a, b, rank, 1);
  for (const [i, value] of sum.entries()) expect(value).toBeCloseTo(parts[0]![i]! + parts[1]![i]!, 4);
});

it.each([
  ['qwen3moe', 'mlp.experts.5.up_proj'],
  ['glm4moe', 'mlp.experts.5.up_proj'],
  ['llama', 'block_sparse_moe.experts.5.w3'],
])('%s names them', (architecture, path) => {
  expect(expertPath('ffn_up_exps', 5, architecture)).toBe(path);
  expect(expertOf(path, architecture)).toEqual({ kind: 'ffn_up_exps', expert: 5 });
  expect(expertOf('mlp.up_proj', architecture)).toBeNull();
});

it('others have one parameter for all', () => {
  const factors = { a: new Float32Array(2), b: new Float32Array(2) };
  expect(unnamedModule({ 'blk.0.attn_q': factors, [NAME]: { ...factors, experts: 2 } }, 'gpt-oss')).toBe(
    NAME,
  );
  expect(unnamedModule({ 'blk.0.attn_q': factors }, 'gpt-oss')).toBeNull();
  expect(unnamedModule({ [NAME]: { ...factors, experts: 2 } }, 'qwen3moe')).toBeNull();
});
