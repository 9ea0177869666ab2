/** A trainer whose one parameter shifts every log-probability: predictable by hand, no model, no addon. */
import fs from 'node:fs/promises';
import path from 'node:path';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import type { PackedRow } from '../../src/protocol/index.ts';
import type { Trainer } from '../../src/rl/trainer.ts';

/** A trainer whose state a test may read and change. */
export type FakeTrainer = Trainer & {
  /** Added to every log-probability; a step moves it against its gradient. */
  shift: number;
  /** The shift of a fresh adapter. */
  fresh: number;
  readonly rows: PackedRow[];
  readonly gradients_seen: number[][];
  /** Replaces the log-probabilities of the next forward passes. */
  next: number[];
};

/** Log-probability of every token is -1 + shift; with the adapter off it is -1. */
export function fakeTrainer(): FakeTrainer {
  let gradient = 0;
  let last = 0;
  const weights = (): AdapterWeights => ({
    'blk.0.attn_q': { a: Float32Array.of(fake.shift), b: Float32Array.of(0) },
  });
  const fake: FakeTrainer = {
    shift: 0,
    fresh: 0,
    rows: [],
    gradients_seen: [],
    next: [],
    info: {
      architecture: 'fake',
      device: 'none',
      vocabularySize: 1000,
      contextSize: 4096,
      layerCount: 1,
      headCount: 1,
      kvHeadCount: 1,
      deltaNet: null,
      routing: null,
      modules: [{ name: 'blk.0.attn_q', in: 1, out: 1, experts: 1 }],
      rank: 1,
      alpha: 1,
      rslora: false,
    },
    async loadAdapter(source) {
      if (typeof source !== 'string') fake.shift = source['blk.0.attn_q']!.a[0]!;
    },
    adapter: weights,
    async checkMemory() {},
    async forward(row, options = {}) {
      fake.rows.push(row);
      last = row.targetTokens.length;
      const value = fake.next.shift() ?? -1 + (options.adapterOff ? 0 : fake.shift);
      return { logprobs: new Float32Array(last).fill(value), entropies: new Float32Array(last).fill(0.5) };
    },
    async backward(given) {
      fake.gradients_seen.push([...given]);
      gradient += given.reduce((sum, value) => sum + value, 0);
    },
    gradients: weights,
    async zeroGradients() {
      gradient = 0;
    },
    async reset() {
      fake.shift = fake.fresh;
      gradient = 0;
    },
    async state() {
      const scalar = (value: number) => ({
        'blk.0.attn_q': { a: Float32Array.of(value), b: Float32Array.of(0) },
      });
      const nothing = scalar(0);
      const [value, columns] = [scalar(fake.shift), { firstMoment: nothing, secondMoment: nothing }];
      return { value, gradient: scalar(gradient), ...columns, stepCount: 0 };
    },
    async restore({ value, gradient: gathered }) {
      if (value) fake.shift = value['blk.0.attn_q']!.a[0]!;
      if (gathered) gradient = gathered['blk.0.attn_q']!.a[0]!;
    },
    async step({ learningRate }) {
      fake.shift -= learningRate * gradient;
      const gradNorm = Math.abs(gradient);
      gradient = 0;
      return { gradNorm, isApplied: Number.isFinite(gradNorm) };
    },
    async save(folder) {
      await fs.mkdir(folder, { recursive: true });
      await fs.writeFile(path.join(folder, 'shift'), String(fake.shift));
    },
    async load(folder) {
      fake.shift = Number(await fs.readFile(path.join(folder, 'shift'), 'utf8'));
    },
    memory: () => ({ bytes: 0, keptLayers: 0 }),
    abort() {},
    async close() {},
    async [Symbol.asyncDispose]() {},
  };
  return fake;
}
