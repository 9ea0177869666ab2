/** Two clients of one engine, step by step: the figure of one request beside a thousand. */
import { describe, expect, it } from 'vitest';
import { Scheduler } from '../../src/engine/scheduler.ts';
import { type Group, Sequence } from '../../src/engine/sequence.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';

const LIMITS = {
  slotCount: 80,
  kvTokens: 80 * 512,
  batchTokens: 512,
  outputRows: 512,
  rowTile: 4,
  rollbackTokens: Infinity,
  windowTokens: 0,
  savedWindow: 0,
  isKvUnified: false,
};

let arrivals = 0;
function sequence(client: string, promptTokens: number, more: Partial<Group> = {}): Sequence {
  const arrival = arrivals++;
  const prompt = Int32Array.from({ length: promptTokens }, (_, i) => (i === 0 ? arrival : i));
  const group = { prompt, cacheKey: '', adapter: 0, priority: 0, arrival, client, ...more };
  return new Sequence(group, 0, fakeSampler());
}

/** Computes a step; a sequence ends after `outputs` tokens. Returns who has sampled. */
function step(scheduler: Scheduler, outputs: number): Sequence[] {
  const plan = scheduler.next();
  if (!plan) return [];
  scheduler.commit(plan);
  const sampled = plan.entries.flatMap(({ samples }) => samples);
  for (const one of sampled) {
    one.append(7);
    if (one.outputCount >= outputs) scheduler.remove(one);
  }
  return sampled;
}

/** Steps until a sequence has its first token. */
function stepsUntil(scheduler: Scheduler, wanted: Sequence, outputs: number): number {
  for (let steps = 1; steps < 10_000; steps++) if (step(scheduler, outputs).includes(wanted)) return steps;
  return Number.POSITIVE_INFINITY;
}

const open = (isKvUnified = false, policy: 'fcfs' | 'priority' = 'fcfs'): Scheduler =>
  new Scheduler({ ...LIMITS, isKvUnified }, { maxRunning: 64, policy, prefixCache: true });

describe('one request beside a thousand of another client', () => {
  it.each<[string, number, number, number, boolean]>([
    ['at once', 0, 20, 50, false],
    ['when they run', 3, 20, 50, false],
    ['when many have ended', 200, 20, 50, false],
    ['with long prompts', 40, 300, 50, false],
    ['with long prompts in a unified cache', 40, 300, 200, true],
    ['with a long prompt of its own', 40, 20, 500, false],
  ])(
    '%s has its first token within 2 steps of when it comes alone',
    (_, before, theirs, outputs, isKvUnified) => {
      const own = 40;
      const alone = open(isKvUnified);
      const first = sequence('one', own);
      alone.add(first);
      const expected = stepsUntil(alone, first, outputs);

      const scheduler = open(isKvUnified);
      for (let i = 0; i < 1000; i++) scheduler.add(sequence('many', theirs));
      for (let i = 0; i < before; i++) step(scheduler, outputs);
      const one = sequence('one', own);
      scheduler.add(one);
      expect(stepsUntil(scheduler, one, outputs)).toBeLessThanOrEqual(expected + 2);
    },
  );

  it('costs the thousand nothing but their turn: all of them end', () => {
    const scheduler = open();
    const all = Array.from({ length: 200 }, () => sequence('many', 20));
    for (const one of all) scheduler.add(one);
    for (let i = 0; i < 20; i++) step(scheduler, 30);
    const others = Array.from({ length: 10 }, (_, i) => sequence(`client ${i}`, 20));
    for (const one of others) scheduler.add(one);
    for (let i = 0; i < 500; i++) step(scheduler, 30);
    expect([...all, ...others].every(({ outputCount }) => outputCount === 30)).toBe(true);
  });
});

describe('shares', () => {
  it('are equal between clients that both have many requests', () => {
    const scheduler = open();
    for (let i = 0; i < 400; i++) scheduler.add(sequence('a', 20));
    for (let i = 0; i < 20; i++) step(scheduler, 40);
    for (let i = 0; i < 400; i++) scheduler.add(sequence('b', 20));
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 300; i++)
      for (const { group } of step(scheduler, 40)) counts[group.client as 'a' | 'b'] += 1;
    expect(counts.b / counts.a).toBeGreaterThan(0.7);
    expect(counts.b / counts.a).toBeLessThan(1.1);
  });

  it('do not reach over a priority: what is more urgent makes no room', () => {
    const scheduler = open(false, 'priority');
    for (let i = 0; i < 200; i++) scheduler.add(sequence('urgent', 20, { priority: -1 }));
    for (let i = 0; i < 10; i++) step(scheduler, 1000);
    const later = sequence('later', 20, { priority: 0 });
    scheduler.add(later);
    for (let i = 0; i < 50; i++) step(scheduler, 1000);
    expect(later.outputCount).toBe(0);
  });
});
