/** Kernels of attention and adapters against 64-bit sums: each set of instructions that this processor has, all with the same bits. */
import { describe, expect, it } from 'vitest';
import { testing as addon } from '../addon/testing-addon.ts';
import { halfBits, toHalf } from '../matmul/formats.ts';
import { normals } from '../rl/tiny-model.ts';
import { difference, KERNELS, numbers } from './numbers.ts';

const F16 = 0;
const Q8_0 = 1;
const F32 = 2;

/** Numbers as cells of a type, and as 64-bit floats. */
type Cells = { readonly bytes: Uint8Array; readonly values: Float64Array };

function cellsOf(type: 0 | 1 | 2, count: number, seed: number): Cells {
  const values = numbers(count, seed);
  if (type === F32) return { bytes: new Uint8Array(Float32Array.from(values).buffer), values };
  if (type === F16) return { bytes: new Uint8Array(Uint16Array.from(values, halfBits).buffer), values };
  const bytes = new Uint8Array((count / 32) * 34);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block < count / 32; block++) {
    const part = values.subarray(block * 32, block * 32 + 32);
    const scale = toHalf(part.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127);
    view.setUint16(block * 34, halfBits(scale), true);
    for (let i = 0; i < 32; i++) {
      const whole = Math.max(-127, Math.min(127, Math.round(part[i]! / scale)));
      view.setInt8(block * 34 + 2 + i, whole);
      part[i] = whole * scale;
    }
  }
  return { bytes, values };
}

type Shape = {
  readonly type: 0 | 1 | 2;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly tokens: number;
  readonly cells: number;
  readonly firstToken: number;
  readonly window: number;
  readonly cap: number;
  readonly sinks: Float32Array;
};

/** softmax(q k / sqrt(width)) v in 64 bits; scores may be capped, and a sink of each head has a score without a value. */
function reference(shape: Shape, q: Float64Array, k: Float64Array, v: Float64Array): number[] {
  const { width, heads, kvHeads, tokens, firstToken, window, cap, sinks } = shape;
  const y: number[] = [];
  for (let token = 0; token < tokens; token++)
    for (let head = 0; head < heads; head++) {
      const end = firstToken + token + 1;
      const cells = Array.from({ length: end }, (_, i) => i).slice(window > 0 ? -window : 0);
      const at = (cell: number) => (cell * kvHeads + Math.floor((head * kvHeads) / heads)) * width;
      const query = q.subarray((token * heads + head) * width, (token * heads + head + 1) * width);
      const scores = cells.map((cell) => {
        const sum = query.reduce((total, value, i) => total + value * k[at(cell) + i]!, 0);
        const score = sum / Math.sqrt(width);
        return cap === 0 ? score : cap * Math.tanh(score / cap);
      });
      const most = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - most));
      const sink = sinks.length === 0 ? 0 : Math.exp(sinks[head]! - most);
      const total = weights.reduce((sum, weight) => sum + weight, sink);
      for (let i = 0; i < width; i++)
        y.push(cells.reduce((sum, cell, n) => sum + weights[n]! * v[at(cell) + i]!, 0) / total);
    }
  return y;
}

const NO_SINKS = new Float32Array();
/** A cache of one sequence, with each cell at its position. */
const OWN_CACHE = { sees: new Uint8Array(), positions: new Int32Array() };
const SHAPES: readonly (Omit<Shape, 'type' | 'cap' | 'sinks'> & Partial<Pick<Shape, 'cap' | 'sinks'>>)[] = [
  { width: 32, heads: 1, kvHeads: 1, tokens: 1, cells: 64, firstToken: 0, window: 0 },
  { width: 64, heads: 4, kvHeads: 2, tokens: 1, cells: 1280, firstToken: 1200, window: 0 },
  { width: 96, heads: 6, kvHeads: 2, tokens: 19, cells: 128, firstToken: 70, window: 0 },
  { width: 128, heads: 5, kvHeads: 1, tokens: 33, cells: 192, firstToken: 0, window: 0 },
  { width: 64, heads: 2, kvHeads: 2, tokens: 40, cells: 256, firstToken: 100, window: 24 },
  { width: 256, heads: 4, kvHeads: 2, tokens: 9, cells: 1280, firstToken: 1100, window: 1050, cap: 1.5 },
  { width: 512, heads: 3, kvHeads: 1, tokens: 2, cells: 128, firstToken: 60, window: 0, cap: 50 },
  {
    width: 64,
    heads: 4,
    kvHeads: 2,
    tokens: 20,
    cells: 128,
    firstToken: 70,
    window: 32,
    sinks: Float32Array.of(-3, 0, 2, 60),
  },
  {
    width: 64,
    heads: 2,
    kvHeads: 1,
    tokens: 1,
    cells: 2304,
    firstToken: 2200,
    window: 0,
    cap: 3,
    sinks: Float32Array.of(1, 3),
  },
];
const CASES = ([F16, Q8_0, F32] as const).flatMap((type) =>
  SHAPES.map((shape): Shape => ({ cap: 0, sinks: NO_SINKS, ...shape, type })),
);

describe.skipIf(KERNELS.length === 0)('attention', () => {
  it.each(CASES)(
    'type $type, $tokens tokens of $heads heads of $width on $kvHeads, window $window, cap $cap',
    (shape) => {
      const { type, width, heads, kvHeads, tokens, cells } = shape;
      const q = numbers(tokens * heads * width, 1);
      const k = cellsOf(type, cells * kvHeads * width, 2);
      const v = cellsOf(type, cells * kvHeads * width, 3);
      const attend = (kernels: string, threads: number): Float32Array =>
        addon.attend({
          kernels,
          ...shape,
          ...OWN_CACHE,
          q: Float32Array.from(q),
          k: k.bytes,
          v: v.bytes,
          threads,
        });
      const first = attend(KERNELS[0]!, 1);
      expect(difference(first, reference(shape, q, k.values, v.values))).toBeLessThan(2e-5);
      for (const kernels of KERNELS)
        for (const threads of [1, 4])
          expect(attend(kernels, threads), `${kernels}, ${threads}`).toEqual(first);
      // The last token by itself has the bits that it has beside the others.
      const last = addon.attend({
        kernels: KERNELS[0]!,
        ...shape,
        ...OWN_CACHE,
        firstToken: shape.firstToken + tokens - 1,
        q: Float32Array.from(q.subarray((tokens - 1) * heads * width)),
        k: k.bytes,
        v: v.bytes,
        threads: 1,
      });
      expect(last).toEqual(first.slice((tokens - 1) * heads * width));
    },
  );
});

describe.skipIf(KERNELS.length === 0)('keys that are not finite', () => {
  const SHAPE = { type: F32, width: 64, heads: 4, kvHeads: 2, cap: 0, sinks: NO_SINKS, window: 0 } as const;

  it.each([
    [NaN, 1],
    [NaN, 20],
    [Infinity, 1],
    [Infinity, 20],
  ])('%d, %i tokens: all sets give the same bits', (value, tokens) => {
    const random = normals(tokens);
    const count = 192 * SHAPE.kvHeads * SHAPE.width;
    const keys = Float32Array.from({ length: count }, () => (random() > 3 ? value : random()));
    const input = {
      ...SHAPE,
      ...OWN_CACHE,
      firstToken: 192 - tokens,
      q: Float32Array.from(numbers(tokens * SHAPE.heads * SHAPE.width, 1)),
      k: new Uint8Array(keys.buffer),
      v: cellsOf(F32, count, 3).bytes,
      threads: 1,
    };
    const all = KERNELS.map((kernels) => addon.attend({ ...input, kernels }));
    for (const y of all) expect(y).toEqual(all[0]);
  });
});

describe.skipIf(KERNELS.length === 0)('a pool of cells', () => {
  const WIDTH = 64;
  const HEADS = 4;
  const KV_HEADS = 2;
  const CELL_BYTES = 2 * WIDTH * KV_HEADS;
  const TOKEN_NUMBERS = WIDTH * HEADS;

  /** `shared`: positions of a prompt that all have; `lengths`: of the sequences; `last`: tokens of each that are computed. */
  it.each<{ name: string; shared: number; lengths: number[]; last: number; window?: number }>([
    { name: 'one sequence', shared: 0, lengths: [700], last: 1 },
    { name: 'its prompt', shared: 0, lengths: [300], last: 40 },
    { name: 'its prompt, with a window', shared: 0, lengths: [300], last: 40, window: 70 },
    { name: 'sequences beside each other', shared: 0, lengths: [1, 2, 65, 300, 128, 40], last: 1 },
    { name: 'a common prompt', shared: 200, lengths: [201, 201, 230, 264, 201], last: 1 },
    { name: 'a common prompt of whole blocks', shared: 128, lengths: [129, 129, 200, 129], last: 1 },
    { name: 'a common prompt of several spans', shared: 1100, lengths: [1101, 1200, 1102], last: 1 },
    { name: 'drafts behind a common prompt', shared: 100, lengths: [110, 120, 130], last: 3 },
    { name: 'windows', shared: 90, lengths: [100, 300, 120], last: 2, window: 50 },
  ])(
    '$name: each token has the bits that it has in a cache of its own',
    ({ shared, lengths, last, window = 0 }) => {
      const random = normals(lengths.length + shared);
      const used = shared + lengths.reduce((sum, length) => sum + length - shared, 0);
      const cells = Math.ceil(used / 64) * 64 + 64;
      const free = Array.from({ length: cells }, (_, cell) => ({ cell, key: random() }));
      const k = cellsOf(F16, cells * KV_HEADS * WIDTH, 2).bytes;
      const v = cellsOf(F16, cells * KV_HEADS * WIDTH, 3).bytes;
      for (const isScattered of [false, true]) {
        const order = isScattered ? free.toSorted((a, b) => a.key - b.key) : free.toReversed();
        const prompt = Array.from({ length: shared }, () => order.pop()!.cell);
        const sequences = lengths.map((length) => [
          ...prompt,
          ...Array.from({ length: length - shared }, () => order.pop()!.cell),
        ]);
        const positions = new Int32Array(cells).fill(-1);
        for (const sequence of sequences)
          for (const [position, cell] of sequence.entries()) positions[cell] = position;
        const tokens = sequences.flatMap((sequence) =>
          Array.from({ length: last }, (_, i) => sequence.length - last + i)
            .filter((position) => position >= 0)
            .map((position) => ({ sequence, position })),
        );
        const sees = new Uint8Array(tokens.length * cells);
        for (const [token, { sequence, position }] of tokens.entries())
          for (let at = window > 0 ? Math.max(0, position + 1 - window) : 0; at <= position; at++)
            sees[token * cells + sequence[at]!] = 1;
        const q = Float32Array.from(numbers(tokens.length * TOKEN_NUMBERS, 1));
        const common = {
          type: F16,
          width: WIDTH,
          heads: HEADS,
          kvHeads: KV_HEADS,
          cap: 0,
          sinks: NO_SINKS,
        } as const;
        const attend = (threads: number, known: Int32Array) =>
          addon.attend({
            ...common,
            kernels: KERNELS[0]!,
            firstToken: 0,
            window: 0,
            sees,
            positions: known,
            q,
            k,
            v,
            threads,
          });
        const pooled = attend(1, positions);
        expect(attend(4, positions)).toEqual(pooled);
        const unknown = attend(1, new Int32Array(cells).fill(-1));
        expect(difference(unknown, [...pooled])).toBeLessThan(2e-5);
        const ownCells = (bytes: Uint8Array, sequence: readonly number[]): Uint8Array => {
          const own = new Uint8Array(Math.ceil(sequence.length / 64) * 64 * CELL_BYTES);
          for (const [position, cell] of sequence.entries())
            own.set(bytes.subarray(cell * CELL_BYTES, (cell + 1) * CELL_BYTES), position * CELL_BYTES);
          return own;
        };
        for (const [token, { sequence, position }] of tokens.entries()) {
          const range = [token * TOKEN_NUMBERS, (token + 1) * TOKEN_NUMBERS] as const;
          const alone = addon.attend({
            ...common,
            ...OWN_CACHE,
            kernels: KERNELS[0]!,
            firstToken: position,
            window,
            q: q.slice(...range),
            k: ownCells(k, sequence),
            v: ownCells(v, sequence),
            threads: 1,
          });
          expect(pooled.slice(...range), `token ${token}`).toEqual(alone);
        }
      }
    },
  );
});

describe.skipIf(KERNELS.length === 0)('factors of adapters', () => {
  it.each([
    [16, 1, 16, 1],
    [64, 4, 48, 3],
    [256, 24, 128, 33],
    [1024, 64, 512, 5],
  ])('%i -> %i -> %i, %i tokens', (size, rank, out, tokens) => {
    const [a, b, x] = [numbers(size * rank, 1), numbers(rank * out, 2), numbers(tokens * size, 3)];
    const run = (kernels: string, rows: Float64Array): Float32Array =>
      addon.lowRank({
        kernels,
        in: size,
        rank,
        out,
        a: Float32Array.from(a),
        b: Float32Array.from(b),
        x: Float32Array.from(rows),
      });
    const expected: number[] = [];
    for (let token = 0; token < tokens; token++) {
      const low = Array.from({ length: rank }, (_, r) => {
        let sum = 0;
        for (let i = 0; i < size; i++) sum += a[r * size + i]! * x[token * size + i]!;
        return sum;
      });
      for (let o = 0; o < out; o++)
        expected.push(low.reduce((sum, value, r) => sum + value * b[r * out + o]!, 0));
    }
    const first = run(KERNELS[0]!, x);
    expect(difference(first, expected)).toBeLessThan(1e-6 * Math.sqrt(size * rank) * 40);
    for (const kernels of KERNELS) expect(run(kernels, x), kernels).toEqual(first);
    expect(run(KERNELS[0]!, x.subarray((tokens - 1) * size))).toEqual(first.slice((tokens - 1) * out));
  });
});
