/** Data and a loss -> its sum and its gradient, as Tinker's docs define them. */
import { expect, it } from 'vitest';
import { createModel, learn, openServer, stepTo } from './exchange.ts';

openServer();

const old = [0, 0, -2.5, -6, -1, -4];
const advantages = [0, 0, 1, 1, -0.5, -0.5];
const clip = (ratio: number, low: number, high: number) => Math.min(Math.max(ratio, low), high);

/** A token's loss and its derivative by the log-probability, from Tinker's docs, in 64-bit floats. */
type Definition = (fresh: number, i: number) => readonly [loss: number, slope: number];
const ratioOf = (fresh: number, i: number) => Math.exp(fresh - Math.fround(old[i]!));
const ppo =
  (low: number, high: number): Definition =>
  (fresh, i) => {
    const [ratio, gain] = [ratioOf(fresh, i), advantages[i]!];
    const [free, clipped] = [ratio * gain, clip(ratio, low, high) * gain];
    return [-Math.min(free, clipped), clipped < free ? 0 : -free];
  };
const cispo =
  (low: number, high: number): Definition =>
  (fresh, i) => {
    const factor = clip(ratioOf(fresh, i), low, high) * advantages[i]!;
    return [-factor * fresh, -factor];
  };
const dro =
  (beta: number): Definition =>
  (fresh, i) => {
    const gap = fresh - Math.fround(old[i]!);
    return [-(fresh * advantages[i]! - (beta / 2) * gap ** 2), -(advantages[i]! - beta * gap)];
  };
const weights = [0, 0, 1, 0.5, 1, 2];
const losses: readonly [
  loss: string,
  config: Record<string, number>,
  columns: Parameters<typeof learn>[3],
  Definition,
][] = [
  ['cross_entropy', {}, { weights }, (fresh, i) => [-weights[i]! * fresh, -weights[i]!]],
  [
    'importance_sampling',
    {},
    { logprobs: old, advantages },
    (fresh, i) => [-ratioOf(fresh, i) * advantages[i]!, -ratioOf(fresh, i) * advantages[i]!],
  ],
  ['ppo', {}, { logprobs: old, advantages }, ppo(0.8, 1.2)],
  [
    'ppo',
    { clip_low_threshold: 0.01, clip_high_threshold: 100 },
    { logprobs: old, advantages },
    ppo(0.01, 100),
  ],
  ['cispo', {}, { logprobs: old, advantages }, cispo(0, 4)],
  [
    'cispo',
    { clip_low_threshold: 0.5, clip_high_threshold: 2 },
    { logprobs: old, advantages },
    cispo(0.5, 2),
  ],
  ['dro', {}, { logprobs: old, advantages }, dro(0.05)],
  ['dro', { beta: 0.5 }, { logprobs: old, advantages }, dro(0.5)],
];

it.each(losses)(
  '%s %j is the sum that the docs define, and so is its gradient',
  async (loss, config, columns, define) => {
    const model = await createModel();
    const { logprobs, metrics } = await learn(model, 1, loss, columns, { config });
    const parts = logprobs.map(define);
    const sum = parts.reduce((all, [part]) => all + part, 0);
    expect(logprobs.every((value) => value < 0)).toBe(true); // also of positions that the loss does not count
    expect(Object.keys(metrics)).toEqual(['loss:sum']);
    expect(metrics['loss:sum']).toBeCloseTo(sum, 4);
    expect(await stepTo(model, 2)).toMatchObject({ metrics: { 'train/skipped_steps': 0 } });
    // Cross-entropy is linear in the log-probabilities, so its weights can be any gradient.
    const other = await createModel();
    await learn(other, 1, 'cross_entropy', { weights: parts.map(([, slope]) => -slope) });
    await stepTo(other, 2);
    const after = await Promise.all(
      [model, other].map((id) => learn(id, 3, 'cross_entropy', { weights }, { isForward: true })),
    );
    expect(after[0]!.logprobs.some((value, i) => Math.abs(value - logprobs[i]!) > 0.01)).toBe(true);
    for (const [i, value] of after[0]!.logprobs.entries())
      expect(value).toBeCloseTo(after[1]!.logprobs[i]!, 3);
  },
);
