/** Kernels of packed matmuls against 64-bit sums: each type, each set of instructions that this processor has. */
import { describe, expect, it } from 'vitest';
import { testing } from '../addon/testing-addon.ts';
import { FORMATS, randomWeights, toHalf, valuesOf } from './formats.ts';

const KERNELS = testing.matmulKernels();
const BLOCK = 32;

function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const roundToEven = (value: number): number => {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
};

/** Activations as 8-bit blocks stand for them. */
function rounded(x: Float32Array): Float64Array {
  const result = new Float64Array(x.length);
  for (let at = 0; at < x.length; at += BLOCK) {
    const block = x.subarray(at, at + BLOCK);
    const largest = block.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const inverse = largest === 0 ? 0 : Math.fround(127 / largest);
    const scale = toHalf(Math.fround(largest / 127));
    for (const [i, value] of block.entries())
      result[at + i] = scale * roundToEven(Math.fround(value * inverse));
  }
  return result;
}

/** Also the sum of absolute parts, to which rounding errors are relative. */
function reference(values: Float64Array, x: Float64Array, width: number): { y: number[]; sizes: number[] } {
  const y: number[] = [];
  const sizes: number[] = [];
  for (let token = 0; token < x.length / width; token++)
    for (let row = 0; row < values.length / width; row++) {
      let sum = 0;
      let size = 0;
      for (let i = 0; i < width; i++) {
        const part = values[row * width + i]! * x[token * width + i]!;
        sum += part;
        size += Math.abs(part);
      }
      y.push(sum);
      sizes.push(size);
    }
  return { y, sizes };
}

/** By name and shape, of which numbers are a function: each set of kernels computes the same ones. */
const known = new Map<string, ReturnType<typeof reference>>();
function expected(name: string, weights: Uint8Array, x: Float32Array, width: number) {
  const format = FORMATS[name]!;
  const key = `${name} ${width} ${weights.length} ${x.length}`;
  const values = () => valuesOf(format, weights);
  const activations = () => (format.round ? Float64Array.from(x, format.round) : rounded(x));
  if (!known.has(key)) known.set(key, reference(values(), activations(), width));
  return known.get(key)!;
}

const SHAPES = [
  { groups: 1, rows: 1, tokens: 1 },
  { groups: 3, rows: 16, tokens: 2 },
  { groups: 2, rows: 17, tokens: 3 },
  { groups: 17, rows: 50, tokens: 5 },
  { groups: 33, rows: 64, tokens: 7 },
  { groups: 5, rows: 129, tokens: 12 },
  { groups: 18, rows: 96, tokens: 31 },
];

const multiply = (
  kernels: string,
  name: string,
  width: number,
  rows: number,
  weights: Uint8Array,
  x: Float32Array,
  threads = 1,
) =>
  testing.packedMatmul({
    kernels,
    type: FORMATS[name]!.type,
    width,
    rows,
    weights,
    x,
    threads,
    rounds: 1,
  });

describe.skipIf(KERNELS.length === 0)('packed matmuls', () => {
  describe.each(KERNELS)('%s', (kernels) => {
    describe.each(Object.keys(FORMATS))('%s', (name) => {
      const format = FORMATS[name]!;

      it.each(SHAPES)('$rows rows of $groups groups, $tokens tokens', async ({ groups, rows, tokens }) => {
        const next = uniform(groups + rows + tokens);
        const width = groups * format.group;
        const weights = randomWeights(format, width, rows, next);
        const x = Float32Array.from({ length: tokens * width }, () => next() - 0.3);
        const { y, sizes } = expected(name, weights, x, width);
        const got = await multiply(kernels, name, width, rows, weights, x);
        expect(Buffer.from(got.weights).equals(weights)).toBe(true);
        const errors = y.map((value, i) => Math.abs(got.y[i]! - value) / sizes[i]!);
        expect(Math.max(...errors)).toBeLessThan(1e-6);
        // The same bits from other threads and by the processor's best kernels.
        const other = await multiply(KERNELS[0]!, name, width, rows, weights, x, 3);
        expect(other.y).toEqual(got.y);
      });

      it('gives a token the same bits alone and in company', async () => {
        const next = uniform(11);
        const [width, rows, tokens] = [format.group * 6, 40, 29];
        const weights = randomWeights(format, width, rows, next);
        const x = Float32Array.from({ length: tokens * width }, () => next() - 0.5);
        const together = await multiply(kernels, name, width, rows, weights, x);
        for (let token = 0; token < tokens; token++) {
          const alone = await multiply(
            kernels,
            name,
            width,
            rows,
            weights,
            x.slice(token * width, (token + 1) * width),
          );
          expect(alone.y, `token ${token}`).toEqual(together.y.subarray(token * rows, (token + 1) * rows));
        }
      });

      it('gives zeros for zeros', async () => {
        const weights = randomWeights(format, format.group, 3, uniform(1));
        const { y } = await multiply(
          kernels,
          name,
          format.group,
          3,
          weights,
          new Float32Array(2 * format.group),
        );
        expect(Array.from(y, Math.abs)).toEqual([0, 0, 0, 0, 0, 0]);
      });
    });
  });

  /** Tokens with experts of many rows, of one, and of none; activations of their own for each expert or not. */
  const EXPERTS = [
    { groups: 1, rows: 1, experts: 4, used: 2, tokens: 1, isShared: true },
    { groups: 3, rows: 35, experts: 2, used: 1, tokens: 19, isShared: false },
    { groups: 2, rows: 48, experts: 16, used: 4, tokens: 7, isShared: true },
    { groups: 5, rows: 17, experts: 5, used: 3, tokens: 40, isShared: false },
    { groups: 4, rows: 32, experts: 64, used: 4, tokens: 6, isShared: true },
  ];

  describe.each(KERNELS)('experts: %s', (kernels) => {
    describe.each(Object.keys(FORMATS))('%s', (name) => {
      const format = FORMATS[name]!;

      it.each(EXPERTS)(
        '$tokens tokens, $used of $experts experts, shared: $isShared',
        async ({ groups, rows, experts, used, tokens, isShared }) => {
          const next = uniform(groups + rows + tokens);
          const width = groups * format.group;
          const weights = randomWeights(format, width, experts * rows, next);
          const x = Float32Array.from({ length: tokens * (isShared ? 1 : used) * width }, () => next() - 0.4);
          // Half of the tokens want the first experts.
          const ids = Int32Array.from({ length: tokens * used }, (_, i) => {
            const first = next() < 0.5 ? 0 : Math.floor(next() * experts);
            return i % used === 0 ? first : 0;
          });
          for (const [i] of ids.entries()) if (i % used > 0) ids[i] = (ids[i - 1]! + 1) % experts;
          const options = { kernels, type: format.type, width, rows, weights, ids, used, x };
          const got = await testing.packedExperts({ ...options, threads: 1 });
          const bytes = weights.length / experts;
          for (const [i, id] of ids.entries()) {
            const row = isShared ? Math.floor(i / used) : i;
            const alone = await multiply(
              kernels,
              name,
              width,
              rows,
              weights.slice(id * bytes, (id + 1) * bytes),
              x.slice(row * width, (row + 1) * width),
            );
            expect(got.subarray(i * rows, (i + 1) * rows), `row ${i}`).toEqual(alone.y);
          }
          // The same bits from any number of threads and by the processor's best kernels.
          const other = { ...options, kernels: KERNELS[0]! };
          for (const threads of [2, 5])
            expect(await testing.packedExperts({ ...other, threads })).toEqual(got);
        },
      );
    });
  });

  it.each([
    ['ids', { ids: Int32Array.of(0, 2) }],
    ['weights', { weights: new Uint8Array(70) }],
    ['weights', { x: new Float32Array(96) }],
    ['used', { used: 0 }],
  ])('refuses wrong %s of experts', (field, wrong) => {
    const right = {
      kernels: KERNELS[0]!,
      type: 8,
      width: 32,
      rows: 1,
      weights: new Uint8Array(68),
      ids: Int32Array.of(0, 1),
      used: 2,
      x: new Float32Array(32),
    };
    const call = () => testing.packedExperts({ ...right, threads: 1, ...wrong });
    expect(call).toThrow(new RegExp(`^${field}: expected`));
  });

  it.each([
    ['kernels', { kernels: 'none' }],
    ['type', { type: 3 }],
    ['weights', { weights: new Uint8Array(5) }],
    ['weights', { x: new Float32Array(5) }],
  ])('refuses a wrong %s', (field, wrong) => {
    const right = {
      kernels: KERNELS[0]!,
      type: 8,
      width: 32,
      rows: 1,
      weights: new Uint8Array(34),
      x: new Float32Array(32),
    };
    const call = () => testing.packedMatmul({ ...right, threads: 1, rounds: 1, ...wrong });
    expect(call).toThrow(new RegExp(`^${field}: expected`));
  });
});
