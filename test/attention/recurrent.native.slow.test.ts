/** Kernels of recurrent layers against 64-bit sums: each set of instructions that this processor has, all with the same bits. */
import { describe, expect, it } from 'vitest';
import { testing as addon } from '../addon/testing-addon.ts';
import { difference, KERNELS, numbers } from './numbers.ts';

describe.skipIf(KERNELS.length === 0)('recurrent layers', () => {
  it.each([
    [16, 1, 1],
    [32, 7, 32],
    [64, 32, 1],
    [128, 20, 128],
    [128, 3, 1],
  ])('a delta net of size %i, %i tokens, %i gates each', (size, tokens, gateCount) => {
    const random = (count: number, seed: number, scale: number) =>
      Float32Array.from(numbers(count, seed), (value) => scale * value);
    const row = 1 / Math.sqrt(size);
    const [q, k, v] = [1, 2, 3].map((seed) => random(tokens * size, seed, row)) as Float32Array[];
    const gates = random(tokens * gateCount, 4, 1).map((value) => -Math.abs(value));
    const beta = random(tokens, 5, 1).map((value) => 1 / (1 + Math.exp(-value)));
    const state = random(size * size, 6, row);
    const run = (kernels: string, first: number, end: number, from: Float32Array): Float32Array => {
      const part = (values: Float32Array, width: number) => values.slice(first * width, end * width);
      return addon.deltaNet({
        kernels,
        size,
        q: part(q!, size),
        k: part(k!, size),
        v: part(v!, size),
        gates: part(gates, gateCount),
        beta: part(beta, 1),
        state: from,
      });
    };
    const s = Float64Array.from(state);
    const expected: number[] = [];
    for (let t = 0; t < tokens; t++)
      for (let j = 0; j < size; j++) {
        const at = (values: Float32Array, i: number) => values[t * size + i]!;
        let known = 0;
        for (let i = 0; i < size; i++) {
          s[j * size + i]! *= Math.exp(gates[gateCount === 1 ? t : t * size + i]!);
          known += s[j * size + i]! * at(k!, i);
        }
        let y = 0;
        for (let i = 0; i < size; i++) {
          s[j * size + i]! += at(k!, i) * beta[t]! * (at(v!, j) - known);
          y += s[j * size + i]! * at(q!, i);
        }
        expected.push(y / Math.sqrt(size));
      }
    const whole = run(KERNELS[0]!, 0, tokens, state);
    expect(difference(whole, [...expected, ...s])).toBeLessThan(1e-6);
    for (const kernels of KERNELS) {
      expect(run(kernels, 0, tokens, state), kernels).toEqual(whole);
      // The bits are the same where the prompt is cut.
      let rest = state;
      for (let t = 0; t < tokens; t++) {
        const one = run(kernels, t, t + 1, rest);
        expect(one.slice(0, size)).toEqual(whole.slice(t * size, (t + 1) * size));
        rest = one.slice(size);
      }
      expect(rest).toEqual(whole.slice(tokens * size));
    }
  });

  it.each([
    [16, 4, 40],
    [5, 3, 17],
    [1, 16, 1],
  ])('a convolution of %i channels by %i taps, %i tokens', (channels, taps, tokens) => {
    const length = tokens + taps - 1;
    const x = Float32Array.from(numbers(channels * length, 1));
    const weights = Float32Array.from(numbers(channels * taps, 2));
    const expected: number[] = [];
    for (let t = 0; t < tokens; t++)
      for (let channel = 0; channel < channels; channel++) {
        const parts = Array.from(
          { length: taps },
          (_, i) => x[channel * length + t + i]! * weights[channel * taps + i]!,
        );
        expected.push(parts.reduce((sum, part) => sum + part, 0));
      }
    const first = addon.convolve({ kernels: KERNELS[0]!, channels, taps, x, weights });
    expect(difference(first, expected)).toBeLessThan(1e-5);
    for (const kernels of KERNELS) {
      expect(addon.convolve({ kernels, channels, taps, x, weights }), kernels).toEqual(first);
      const last = Float32Array.from({ length: channels * taps }, (_, i) => {
        const channel = Math.floor(i / taps);
        return x[channel * length + tokens - 1 + (i % taps)]!;
      });
      const alone = addon.convolve({ kernels, channels, taps, x: last, weights });
      expect(alone).toEqual(first.slice((tokens - 1) * channels));
    }
  });
});
