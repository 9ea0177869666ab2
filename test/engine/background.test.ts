/** Sequences of the background beside others, step by step: who computes what, and who makes room. */
import { describe, expect, it } from 'vitest';
import { Scheduler, type SchedulerLimits } from '../../src/engine/scheduler.ts';
import type { Sequence } from '../../src/engine/sequence.ts';
import { type Given, LIMITS, Names, POLICY, prompt, sequencesOf } from './plans.ts';

/** Sequences in a scheduler, those without `late` added. */
function open(requests: readonly (Given & { late?: boolean })[], limits: Partial<SchedulerLimits> = {}) {
  const sequences = sequencesOf(requests.map(({ late: _, ...given }) => given));
  const scheduler = new Scheduler({ ...LIMITS, ...limits }, POLICY);
  sequences.forEach((sequence, i) => {
    if (!requests[i]!.late) scheduler.add(sequence);
  });
  const names = new Names(sequences);
  /** Computes a step, and says whose tokens it had. */
  const step = (): string => {
    const plan = scheduler.next();
    if (!plan) return '';
    scheduler.commit(plan);
    for (const { samples } of plan.entries) for (const one of samples) one.append(7);
    return plan.entries
      .map(({ sequence, count }) => names.of(sequence) + count)
      .toSorted()
      .join(' ');
  };
  return { scheduler, sequences, step };
}

const back = { background: true };
const end = (scheduler: Scheduler, sequence: Sequence): void => scheduler.remove(sequence);

describe('the background', () => {
  it('waits from the next step on while another sequence runs, and goes on behind it', () => {
    const { scheduler, sequences, step } = open([
      { prompt: prompt(1, 3), ...back },
      { prompt: prompt(2, 3), ...back },
      { prompt: prompt(3, 3), late: true },
    ]);
    expect([step(), step()]).toEqual(['a3 b3', 'a1 b1']);
    scheduler.add(sequences[2]!);
    expect([step(), step(), step()]).toEqual(['c3', 'c1', 'c1']);
    end(scheduler, sequences[2]!);
    expect([step(), step()]).toEqual(['a1 b1', 'a1 b1']); // nothing is computed again
  });

  it('keeps the others predictable: their next step can be run ahead', () => {
    const { scheduler, sequences, step } = open([
      { prompt: prompt(1, 3), ...back },
      { prompt: prompt(2, 3), late: true },
    ]);
    step();
    scheduler.add(sequences[1]!);
    step();
    expect(scheduler.next()).toMatchObject({ isSteady: true });
  });

  it('gives up its slots', () => {
    const { scheduler, sequences, step } = open([
      ...[1, 2, 3, 4].map((i) => ({ prompt: prompt(i, 2), ...back })),
      ...[5, 6].map((i) => ({ prompt: prompt(i, 2), late: true })),
    ]);
    expect([step(), step()]).toEqual(['a2 b2 c2 d2', 'a1 b1 c1 d1']);
    for (const late of sequences.slice(4)) scheduler.add(late);
    expect([step(), step()]).toEqual(['e2 f2', 'e1 f1']);
    expect(scheduler.counts()).toMatchObject({ running: 4, waiting: 2 });
    for (const late of sequences.slice(4)) end(scheduler, late);
    expect(step()).toBe('a1 b1 c4 d2'); // c and d begin again, as far as the budget goes
  });

  it('gives up its cells', () => {
    const { scheduler, sequences, step } = open(
      [
        { prompt: prompt(1, 8), ...back },
        { prompt: prompt(2, 8), ...back },
        { prompt: prompt(3, 8), late: true },
      ],
      { kvTokens: 20 },
    );
    expect([step(), step()]).toEqual(['a8', 'a1 b7']);
    scheduler.add(sequences[2]!);
    expect([step(), step()]).toEqual(['c8', 'c1']);
    end(scheduler, sequences[2]!);
    for (let i = 0; i < 6; i++) step();
    expect(sequences.slice(0, 2).every(({ outputCount }) => outputCount > 0)).toBe(true);
  });

  it('is not waited for where it was about to compute a shared prefix', () => {
    const long = prompt(1, 24);
    const { scheduler, sequences, step } = open([
      { prompt: long, ...back },
      { prompt: prompt(2, 2), late: true },
      { prompt: long, late: true },
    ]);
    expect(step()).toBe('a8');
    for (const late of sequences.slice(1)) scheduler.add(late);
    expect([step(), step()]).toEqual(['b2 c6', 'b1 c7']);
  });

  it('runs where nothing else can', () => {
    const { scheduler, sequences, step } = open([
      { prompt: prompt(1, 3), ...back },
      { prompt: prompt(2, 3), late: true },
    ]);
    step();
    sequences[1]!.awaitToken();
    scheduler.add(sequences[1]!);
    expect([step(), step()]).toEqual(['a1', 'a1']);
    sequences[1]!.append(7);
    expect(step()).toBe('b4');
  });

  it('comes last in every policy, behind every priority', () => {
    const { step } = open([
      { prompt: prompt(1, 4), ...back, priority: -5 },
      { prompt: prompt(2, 4), priority: 5 },
      { prompt: prompt(3, 4) },
    ]);
    expect(step()).toBe('b4 c4');
  });
});
