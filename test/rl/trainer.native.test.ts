import { describe, expect, it } from 'vitest';
import { openGolden as open, readGolden } from './golden.ts';

function largestDifference(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  return got.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}

/** |got - expected| / |expected| over one matrix. */
function relativeDifference(got: Float32Array, expected: Float32Array): number {
  const norm = (values: Float32Array) => Math.hypot(...values);
  return norm(got.map((value, i) => value - expected[i]!)) / (norm(expected) + 1e-12);
}

const GOLDEN = [
  'train-llama',
  'train-qwen2',
  'train-qwen3',
  'qwen35/single',
  'qwen35/packed',
  'gpt-oss/single',
];

describe.each(GOLDEN)('trainer against golden numbers, %s in F32', (name) => {
  const golden = readGolden(name);

  it('gives log-probabilities and entropies', async () => {
    await using trainer = await open(golden);
    const off = await trainer.forward(golden.row, { adapterOff: true, gradients: false });
    expect(largestDifference(off.logprobs, golden.numbers('reference.logprobs'))).toBeLessThan(1e-4);
    const { logprobs, entropies } = await trainer.forward(golden.row);
    expect(largestDifference(logprobs, golden.numbers('step0.logprobs'))).toBeLessThan(1e-4);
    expect(largestDifference(entropies, golden.numbers('step0.entropies'))).toBeLessThan(1e-4);
  });

  it('gives gradients', async () => {
    await using trainer = await open(golden);
    await trainer.forward(golden.row);
    await trainer.backward(golden.numbers('grad_logprobs'));
    const gradients = trainer.gradients();
    for (const [module, { a, b }] of Object.entries(golden.weights('grad'))) {
      expect(relativeDifference(gradients[module]!.a, a), `${module} a`).toBeLessThan(1e-3);
      expect(relativeDifference(gradients[module]!.b, b), `${module} b`).toBeLessThan(1e-3);
    }
  });

  it('gives the adapter after three steps', async () => {
    await using trainer = await open(golden);
    for (let step = 0; step < 3; step++) {
      const { logprobs } = await trainer.forward(golden.row);
      expect(largestDifference(logprobs, golden.numbers(`step${step}.logprobs`))).toBeLessThan(1e-4);
      await trainer.backward(golden.numbers('grad_logprobs'));
      const { gradNorm } = await trainer.step({ learningRate: Number(golden.metadata['lr']) });
      const expected = golden.numbers(`step${step}.grad_norm`)[0]!;
      expect(Math.abs(gradNorm / expected - 1)).toBeLessThan(1e-3);
    }
    const adapter = trainer.adapter();
    for (const [module, { a, b }] of Object.entries(golden.weights('final'))) {
      expect(largestDifference(adapter[module]!.a, a), `${module} a`).toBeLessThan(1e-4);
      expect(largestDifference(adapter[module]!.b, b), `${module} b`).toBeLessThan(1e-4);
    }
  });
});
