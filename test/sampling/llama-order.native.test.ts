/** The samplers of llama.cpp: what they leave, against llama.cpp's own (golden) and against the formulas in float64. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../src/engine/native/sampler.ts';
import { testing } from '../addon/testing-addon.ts';
import {
  llamaDistribution,
  ReferenceAdaptive,
  ReferenceDry,
  ReferenceMirostat,
} from '../fakes/llama-samplers.ts';
import { uniformAt } from '../fakes/philox.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { maskOf, randomRow } from '../fakes/random-row.ts';
import { softmax } from '../fakes/reference-sampler.ts';
import { type History, letterTexts, nativeSampler, wordOf } from '../fakes/sampling.ts';

type Plan = Omit<SamplerPlanOptions, 'vocabSize'>;
type Left = readonly (readonly [id: number, probability: number])[];
type Golden = {
  readonly rows: readonly (readonly number[])[];
  readonly cases: readonly {
    readonly plan: Plan;
    readonly history: number[];
    readonly left: readonly Left[];
  }[];
  readonly adaptive: readonly {
    readonly plan: Plan;
    readonly steps: readonly { readonly token: number; readonly before: Left; readonly left: Left }[];
  }[];
  readonly mirostat: readonly {
    readonly plan: Plan;
    readonly steps: readonly { readonly token: number; readonly left: Left }[];
  }[];
};
const golden = JSON.parse(
  fs.readFileSync(new URL('../golden/sampling/llama-samplers.json', import.meta.url), 'utf8'),
) as Golden;
const ROWS = golden.rows.map((row) => Float32Array.from(row));
const SIZE = ROWS[0]!.length;
const LARGE = 20_000;

/** The whole distribution of the next token. */
function distribution(plan: Plan, logits: Float32Array, history: History = {}, seed = 3n): number[] {
  const vocabSize = logits.length;
  const whole = { ...plan, vocabSize, processedLogprobs: true, topLogprobs: vocabSize };
  return spread(nativeSampler(whole, seed, history).sample(logits));
}

function spread({ topIds, topLogprobs }: { topIds: Int32Array; topLogprobs: Float32Array }): number[] {
  const probabilities = new Array<number>(topIds.length).fill(0);
  for (const [at, id] of topIds.entries()) probabilities[id] = Math.exp(topLogprobs[at]!);
  return probabilities;
}

/** The same tokens are left, with the same probabilities. Shows the first that differ. */
function expectClose(given: readonly number[], expected: readonly number[], share = 1e-4): void {
  const differs = (p: number, wanted: number): boolean =>
    p > 0 !== wanted > 0 || Math.abs(p - wanted) > share * wanted + 1e-9;
  const off = given.flatMap((p, id) =>
    differs(p, expected[id]!) ? [{ id, p, expected: expected[id] }] : [],
  );
  expect(off.slice(0, 5)).toEqual([]);
}

const fromLeft = (left: Left): number[] => {
  const probabilities = new Array<number>(SIZE).fill(0);
  for (const [id, p] of left) probabilities[id] = p;
  return probabilities;
};

describe("llama.cpp's own", () => {
  it.each(golden.cases.map((one) => [JSON.stringify(one.plan), one] as const))(
    '%s',
    (_, { plan, history, left }) => {
      for (const [at, logits] of ROWS.entries())
        expectClose(distribution(plan, logits, { prompt: history }), fromLeft(left[at]!));
    },
  );

  it.each(golden.adaptive.map((one) => [JSON.stringify(one.plan), one] as const))(
    '%s',
    (_, { plan, steps }) => {
      const sampler = nativeSampler(
        { ...plan, vocabSize: SIZE, processedLogprobs: true, topLogprobs: SIZE },
        3n,
      );
      for (const [at, { token, before, left }] of steps.entries()) {
        expectClose(spread(sampler.sample(ROWS[at % ROWS.length]!)), fromLeft(left), 1e-3);
        sampler.accept(token, -Math.log2(fromLeft(before)[token]!));
      }
    },
  );

  it.each(golden.mirostat.map((one) => [JSON.stringify(one.plan), one] as const))(
    '%s',
    (_, { plan, steps }) => {
      const whole = { ...plan, vocabSize: SIZE, processedLogprobs: true, topLogprobs: SIZE };
      const sampler = nativeSampler(whole, 3n);
      for (const [at, { token, left }] of steps.entries()) {
        expectClose(spread(sampler.sample(ROWS[at % ROWS.length]!)), fromLeft(left), 1e-3);
        sampler.accept(token, -Math.log2(fromLeft(left)[token]!));
      }
    },
  );
});

describe('the formulas in float64', () => {
  const next = randomNumbers(5);
  const pick = <T>(...values: T[]): T => values[Math.floor(next() * values.length)]!;
  const plans = Array.from(
    { length: 60 },
    (): Plan => ({
      temperature: pick(0.3, 0.8, 1, 1.7),
      top_n_sigma: pick(-1, -1, 0, 0.8, 2.5),
      adaptive_target: pick(-1, -1, 0, 0.2, 1),
      top_k: pick(0, 0, 12, 200),
      typical_p: pick(1, 0.2, 0.6, 0.97),
      top_p: pick(1, 1, 0.5, 0.93),
      min_p: pick(0, 0, 0.01, 0.2),
      xtc_probability: pick(0, 1, 0.5),
      xtc_threshold: pick(0.02, 0.1, 0.3),
      dynatemp_range: pick(0, 0.4, 2),
      dynatemp_exponent: pick(1, 0.5, 2),
    }),
  );

  it.each(plans.map((plan, seed) => [JSON.stringify(plan), plan, seed] as const))('%s', (_, plan, seed) => {
    const logits = randomRow(seed % 6 === 0 ? LARGE : 333, seed);
    const mask =
      seed % 2 === 0
        ? undefined
        : maskOf(
            logits.length,
            logits.map((_, id) => id).filter((id) => id % 3 > 0),
          );
    const xtc = uniformAt(BigInt(seed), 0, 1);
    const masked = Array.from(logits, (value, id) => (mask && id % 3 === 0 ? -Infinity : value));
    const options = {
      ...plan,
      vocabSize: logits.length,
      processedLogprobs: true,
      topLogprobs: logits.length,
    };
    const given = spread(nativeSampler(options, BigInt(seed)).sample(logits, mask));
    expectClose(given, llamaDistribution(options, masked, xtc), 1e-3);
  });

  it.each([
    [{ mirostat: 1 }],
    [{ mirostat: 2 }],
    [{ mirostat: 1, mirostat_tau: 2, mirostat_eta: 1 }],
    [{ mirostat: 2, mirostat_tau: 7, mirostat_eta: 0.02, temperature: 2 }],
  ])('%j, drawn token by token', (plan: Plan) => {
    const options = { ...plan, vocabSize: LARGE, processedLogprobs: true, topLogprobs: LARGE };
    const sampler = nativeSampler(options, 11n);
    const reference = new ReferenceMirostat(options);
    for (let step = 0; step < 6; step++) {
      const logits = randomRow(LARGE, step, 200);
      const row = sampler.sample(logits);
      const expected = reference.distribution(Array.from(logits));
      expectClose(spread(row), expected, 1e-2);
      expect(row.surprise).toBeCloseTo(-Math.log2(expected[row.token]!), 3);
      sampler.accept(row.token, row.surprise);
      reference.accept(row.surprise);
    }
  });

  it.each([
    [{ adaptive_target: 0.3 }],
    [{ adaptive_target: 0.02, adaptive_decay: 0.99, temperature: 1.4, top_p: 0.9 }],
    [{ adaptive_target: 0.8, adaptive_decay: 0, min_p: 0.001 }],
  ])('%j, drawn token by token', (plan: Plan) => {
    const options = { ...plan, vocabSize: LARGE, processedLogprobs: true, topLogprobs: LARGE };
    const sampler = nativeSampler(options, 11n);
    const reference = new ReferenceAdaptive(options);
    for (let step = 0; step < 8; step++) {
      const logits = randomRow(LARGE, step, 200);
      const row = sampler.sample(logits);
      expectClose(spread(row), llamaDistribution(options, Array.from(logits), 0, reference.target), 1e-2);
      const own = llamaDistribution({ ...options, adaptive_target: -1 }, Array.from(logits), 0);
      expect(2 ** -row.surprise).toBeCloseTo(own[row.token]!, 5); // float32 holds no probability below 1e-38
      sampler.accept(row.token, Math.min(row.surprise, 1000));
      reference.accept(own[row.token]!);
    }
  });

  it('DRY, with sequence breakers of several letters', () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = randomNumbers(seed);
      const tokens = Array.from({ length: 5 + Math.floor(random() * 120) }, () => Math.floor(random() * 4));
      const plan = {
        dry_multiplier: 0.05,
        dry_base: 1.3,
        dry_allowed_length: seed % 4,
        dry_penalty_last_n: seed % 3 === 0 ? 25 : -1,
        ...(seed % 2 === 0
          ? {}
          : { dry_sequence_breakers: [wordOf(2, 3), wordOf(0, 0, 0)], breakerTexts: letterTexts(SIZE) }),
        repetition_penalty: seed % 5 === 0 ? 1.2 : 1,
      };
      const expected = new ReferenceDry(plan, tokens).penalised(ROWS[0]!);
      const given = distribution(plan, ROWS[0]!, { prompt: tokens.slice(0, 3), output: tokens.slice(3) });
      expectClose(given, softmax(expected), 1e-3);
    }
  });
});

describe('at the edges', () => {
  const logits = ROWS[1]!;
  const best = logits.indexOf(Math.max(...logits));

  it.each<[string, Plan]>([
    ['typical_p', { typical_p: 0.1 }],
    ['XTC', { xtc_probability: 1, xtc_threshold: 0.01 }],
    ['a range of temperatures', { dynatemp_range: 5 }],
    ['mirostat', { mirostat: 2 }],
    ['top-n-sigma', { top_n_sigma: 0.1 }],
    ['adaptive-p', { adaptive_target: 0 }],
  ])('temperature 0 takes the best token whatever %s says', (_, plan) => {
    expect(nativeSampler({ ...plan, vocabSize: SIZE, temperature: 0 }, 1n).sample(logits).token).toBe(best);
  });

  it('a penalty of DRY is no mask: the only token that is allowed comes', () => {
    const plan = {
      vocabSize: SIZE,
      dry_multiplier: 1e38,
      dry_base: 1e9,
      dry_allowed_length: 1,
      allowed: maskOf(SIZE, [5]),
    };
    const repeated = { output: [5, 5, 5, 5, 5, 5, 5] };
    expect(nativeSampler(plan, 1n, repeated).sample(logits)).toMatchObject({ status: 0, token: 5 });
  });

  it.each<Plan>([
    { mirostat: 1 },
    { mirostat: 2 },
    { typical_p: 0.01 },
    { top_n_sigma: 0.001 },
    { adaptive_target: 0.5 },
    { xtc_probability: 1, xtc_threshold: 0 },
  ])('%j leaves a token of two that are equal, or of one', (plan) => {
    for (const row of [Float32Array.of(0, 0), Float32Array.of(1), Float32Array.of(-Infinity, 3, -Infinity)])
      expect(nativeSampler({ ...plan, vocabSize: row.length }, 1n).sample(row).status).toBe(0);
  });

  it('XTC runs as often as it says', () => {
    const plan = { vocabSize: 3, xtc_probability: 0.3, xtc_threshold: 0.2 };
    const draws = nativeSampler(plan, 9n).drawMany(Float32Array.of(3, 2.5, -1), 20_000);
    expect(draws.filter((token) => token === 0).length / 20_000).toBeCloseTo(
      0.7 * softmax([3, 2.5, -1])[0]!,
      1,
    );
  });

  it('a copy of a sampler has its repetitions and its surprise', () => {
    const plan = {
      vocabSize: SIZE,
      mirostat: 2,
      mirostat_eta: 1,
      dry_multiplier: 2,
      processedLogprobs: true,
      topLogprobs: SIZE,
    };
    const sampler = nativeSampler(plan, 2n, { output: [1, 2, 1, 2] });
    sampler.accept(1, 12);
    const copy = new testing.Sampler(sampler);
    expect(copy.sample(logits)).toEqual(sampler.sample(logits));
    sampler.accept(3, 0);
    expect(copy.sample(logits).topLogprobs).not.toEqual(sampler.sample(logits).topLogprobs);
  });
});
