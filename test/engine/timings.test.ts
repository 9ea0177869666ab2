import { describe, expect, it } from 'vitest';
import { sumHistograms } from '../../src/common/histogram.ts';
import { Histogram } from '../../src/common/index.ts';
import { StepTimings, sumTimings } from '../../src/engine/engine-stats.ts';
import type { Plan } from '../../src/engine/plan.ts';
import type { Sequence } from '../../src/engine/sequence.ts';
import { prompt, sequencesOf } from './plans.ts';

describe('a histogram', () => {
  it('counts a value at its bound below it', () => {
    const histogram = new Histogram([1, 2]);
    for (const value of [0.5, 1, 1.5, 2, 2.5]) histogram.add(value);
    histogram.add(3, 4);
    expect(histogram.data()).toEqual({ bounds: [1, 2], counts: [2, 2, 5], sum: 19.5 });
  });

  it('adds up with others', () => {
    const [a, b] = [new Histogram([1]), new Histogram([1])];
    a.add(1);
    b.add(2);
    expect(sumHistograms([a.data(), b.data()], [1])).toEqual({ bounds: [1], counts: [1, 1], sum: 3 });
    expect(sumHistograms([], [1])).toEqual({ bounds: [1], counts: [0, 0], sum: 0 });
  });
});

/** A step that gives each of these sequences so many tokens. */
function step(
  timings: StepTimings,
  sequences: readonly Sequence[],
  tokens: number,
  from: number,
  to: number,
) {
  for (const sequence of sequences) for (let i = 0; i < tokens; i++) sequence.append(7);
  const entries = sequences.map((sequence) => ({ sequence, samples: [sequence] }));
  timings.add({ entries } as unknown as Plan, from, to);
}

describe('the timings of an engine', () => {
  it('are those of queue, first token and further ones', () => {
    const timings = new StepTimings();
    const [a, b] = sequencesOf([{ prompt: prompt(1, 10) }, { prompt: prompt(2, 20) }]) as [
      Sequence,
      Sequence,
    ];
    a.times.submittedMs = 0;
    b.times.submittedMs = 900;
    Object.assign(b.place, { cachedTokens: 18 });
    step(timings, [a], 0, 1000, 1100); // a part of its prompt
    step(timings, [a, b], 1, 1100, 1200);
    step(timings, [a, b], 4, 1200, 1400); // drafts that were right
    const { queueSeconds, firstTokenSeconds, betweenTokensSeconds, promptTokens, cachedPromptTokens } =
      timings.data();
    const countOf = ({ counts }: { counts: readonly number[] }): number => counts.reduce((x, y) => x + y);
    expect([countOf(queueSeconds), queueSeconds.sum]).toEqual([2, 1.2]);
    expect([countOf(firstTokenSeconds), firstTokenSeconds.sum]).toEqual([2, 1.5]);
    expect(countOf(betweenTokensSeconds)).toBe(8);
    expect(betweenTokensSeconds.sum).toBeCloseTo(0.4);
    expect([countOf(promptTokens), promptTokens.sum]).toEqual([2, 30]);
    expect([countOf(cachedPromptTokens), cachedPromptTokens.sum]).toEqual([2, 18]);
    expect(sumTimings([timings.data(), timings.data()]).promptTokens.sum).toBe(60);
  });
});
