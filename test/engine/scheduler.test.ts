import { describe, expect, it } from 'vitest';
import type { Handle } from '../../src/engine/native/index.ts';
import type { Plan } from '../../src/engine/plan.ts';
import { Scheduler, type SchedulerLimits, type SchedulerOptions } from '../../src/engine/scheduler.ts';
import { type Group, Sequence } from '../../src/engine/sequence.ts';
import { Speculation } from '../../src/engine/speculation.ts';
import { PromptScores } from '../../src/sampling/prompt-scores.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';
import { type Given, LIMITS, Names, POLICY, prompt, sequencesOf, showEdits } from './plans.ts';

type Settings = Partial<SchedulerLimits & SchedulerOptions>;

/** A request for which a draft is proposed once its prompt is computed. */
function drafting(): Given {
  const speculation = new Speculation({ drafter: {} as Handle, maxTokens: 4, trust: 1 });
  speculation.limits.fill(1);
  speculation.propose(Int32Array.of(50, 51, 52));
  return { prompt: prompt(1, 4), extras: { speculation } };
}

/** A scheduler with these requests, and what it plans step by step. */
class Run {
  readonly sequences: Sequence[];
  readonly scheduler: Scheduler;
  readonly #names: Names;
  #plan: Plan | null = null;

  constructor(requests: readonly Given[], settings: Settings = {}) {
    this.sequences = sequencesOf(requests);
    this.#names = new Names(this.sequences);
    this.scheduler = new Scheduler({ ...LIMITS, ...settings }, { ...POLICY, ...settings });
    for (const sequence of this.sequences) this.scheduler.add(sequence);
  }

  /** Plans a step; it is neither committed nor undone. */
  plan(): Plan | null {
    this.#plan = this.scheduler.next();
    return this.#plan;
  }

  /** Plans, computes and shows a step. Each sample becomes a token; the sequences named in `ends` end with it. */
  step(ends = '', forced = 0): string {
    const plan = this.plan();
    if (!plan) return 'nothing';
    const shown = this.#names.show(plan);
    this.scheduler.commit(plan);
    for (const sequence of plan.entries.flatMap(({ samples }) => samples)) {
      for (let i = 0; i <= forced; i++) this.scheduler.slots.appendToken(sequence, 50 + i);
      if (ends.includes(this.#names.of(sequence))) this.scheduler.remove(sequence);
    }
    return shown;
  }

  show(): string {
    return this.#names.show(this.plan());
  }

  /** Edits of the last plan. */
  get edits(): readonly number[] {
    return this.#plan?.edits ?? [];
  }
}

describe('a plan', () => {
  it.each<[string, Given[], Settings, string[]]>([
    [
      'computes a long prompt in chunks, and samples from the last',
      [{ prompt: prompt(1, 12) }],
      {},
      ['a 0+8', 'a 8+4 -> a', 'a 12+1 -> a', 'a 13+1 -> a'],
    ],
    [
      'decodes before it computes prompts',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 12) }],
      {},
      ['a 0+4 -> a, b 0+4', 'a 4+1 -> a, b 4+7', 'a 5+1 -> a, b 11+1 -> b'],
    ],
    [
      'lets all choices of a request sample from one prompt',
      [{ prompt: prompt(1, 4), n: 3 }],
      {},
      ['a 0+4 -> abc', 'a 4+1 -> a, b 4+1 -> b, c 4+1 -> c'],
    ],
    [
      'starts no more than maxRunning',
      [{ prompt: prompt(1, 4), n: 3 }, { prompt: prompt(2, 2) }],
      { maxRunning: 2 },
      ['a 0+4 -> ab', 'a 4+1 -> a, b 4+1 -> b'],
    ],
    [
      'starts in order of arrival',
      [
        { prompt: prompt(1, 4), priority: 2 },
        { prompt: prompt(2, 4), priority: 1 },
      ],
      { maxRunning: 1 },
      ['a 0+4 -> a', 'a 4+1 -> a'],
    ],
    [
      'starts in order of priority under that policy',
      [
        { prompt: prompt(1, 4), priority: 2 },
        { prompt: prompt(2, 4), priority: 1 },
      ],
      { maxRunning: 1, scheduling: 'priority' },
      ['b 0+4 -> b', 'b 4+1 -> b'],
    ],
    [
      'is of one adapter; adapters take turns',
      [{ prompt: prompt(1, 4), adapter: 1 }, { prompt: prompt(2, 4) }, { prompt: prompt(3, 4), adapter: 1 }],
      {},
      ['a 0+4 -> a, c 0+4 -> c', 'b 0+4 -> b', 'a 4+1 -> a, c 4+1 -> c', 'b 4+1 -> b'],
    ],
    [
      'waits for a prefix that another sequence is computing',
      [{ prompt: prompt(1, 12) }, { prompt: [...prompt(1, 12), 7] }],
      {},
      ['a 0+8', 'a 8+4 -> a', 'a 12+1 -> a, b 12+1 -> b'],
    ],
    [
      'computes common beginnings twice where recurrent state cannot be cut',
      [{ prompt: prompt(1, 4) }, { prompt: [...prompt(1, 4), 7] }],
      { rollbackTokens: 0, batchTokens: 16 },
      ['a 0+4 -> a, b 0+5 -> b'],
    ],
    [
      'scores no more rows of a prompt than are left beside those that sample',
      [
        {
          prompt: prompt(1, 6),
          extras: { promptScores: new PromptScores(Int32Array.from(prompt(1, 6)), 1) },
        },
      ],
      { outputRows: 4 },
      ['a 0+3', 'a 3+3 -> a'],
    ],
    [
      'preempts the last in order when a decode finds no cell',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 3) }],
      { kvTokens: 9 },
      ['a 0+4 -> a, b 0+3 -> b', 'a 4+1 -> a, b 3+1 -> b', 'a 5+1 -> a', 'a 6+1 -> a'],
    ],
    [
      'leaves a sequence in the queue that finds no room',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4) }],
      { kvTokens: 8 },
      ['a 0+4 -> a', 'a 4+1 -> a'],
    ],
    [
      'lists neighbouring slots side by side under a non-unified cache',
      [{ prompt: prompt(1, 2) }, { prompt: prompt(2, 2) }, { prompt: prompt(3, 2) }],
      { isKvUnified: false },
      ['a 0+2 -> a, b 0+2 -> b, c 0+2 -> c', 'a 2+1 -> a, b 2+1 -> b, c 2+1 -> c'],
    ],
  ])('%s', (_, requests, settings, expected) => {
    const run = new Run(requests, settings);
    expect(expected.map(() => run.step())).toEqual(expected);
  });

  it.each<[rowTile: number, first: string, second: string]>([
    [1, 'a 4+3 -> a, b 4+3 -> b', 'a 7+3 -> a, b 7+3 -> b'],
    [4, 'a 4+1, b 4+3 -> b', 'a 5+1, b 7+3 -> b'],
  ])('fills whole tiles of %i rows with forced tokens', (rowTile, first, second) => {
    const run = new Run([{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4) }], { rowTile });
    run.step('', 2);
    expect([run.step('', 2), run.step('', 2)]).toEqual([first, second]);
  });

  it.each<[string, Given[], Settings, steps: number, expected: boolean]>([
    ['while a prompt is computed', [{ prompt: prompt(1, 12) }], {}, 0, false],
    ['once all sequences decode', [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4) }], {}, 1, true],
    ['where choices fork', [{ prompt: prompt(1, 4), n: 2 }], {}, 0, false],
    ['while others wait', [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4) }], { maxRunning: 1 }, 1, false],
    [
      'with another adapter in play',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4), adapter: 1 }],
      {},
      2,
      false,
    ],
    ['with recurrent state', [{ prompt: prompt(1, 4) }], { rollbackTokens: 0 }, 1, true],
    ['with drafts', [drafting()], {}, 1, true],
    ['with drafts, which a window may make final', [drafting()], { windowTokens: 40 }, 1, false],
  ])('says whether the next one is predictable: %s', (_, requests, settings, steps, expected) => {
    const run = new Run(requests, settings);
    for (let i = 0; i < steps; i++) run.step();
    expect(run.plan()!.isSteady).toBe(expected);
  });
});

describe('a plan that was not computed', () => {
  it.each<[string, Given[], Settings, makeRoom: boolean, next: string, edits: string]>([
    ['is planned again', [{ prompt: prompt(1, 12) }], {}, false, 'a 0+8', 'cut 0 at 0'],
    ['with forks as well', [{ prompt: prompt(1, 4), n: 2 }], {}, false, 'a 0+4 -> ab', 'free 1, cut 0 at 0'],
    [
      'preempts the last in order to make room',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 4) }],
      {},
      true,
      'a 0+4 -> a',
      'cut 0 at 0, cut 1 at 0, free 1',
    ],
    [
      'starts over with recurrent state',
      [{ prompt: prompt(1, 4) }],
      { rollbackTokens: 0 },
      false,
      'a 0+4 -> a',
      'free 0',
    ],
  ])('%s', (_, requests, settings, makeRoom, next, edits) => {
    const run = new Run(requests, settings);
    run.scheduler.rollback(run.plan()!, { makeRoom });
    expect(run.show()).toBe(next);
    expect(showEdits(run.edits)).toBe(edits);
  });
});

describe('a sequence', () => {
  it.each<[string, Given[], Settings, ends: string[], expected: string[]]>([
    [
      'makes room for the next one when it ends',
      [{ prompt: prompt(1, 4) }, { prompt: prompt(2, 2) }],
      { maxRunning: 1 },
      ['', 'a', ''],
      ['a 0+4 -> a', 'a 4+1 -> a', 'b 0+2 -> b'],
    ],
    [
      'leaves its prefix to later ones',
      [{ prompt: prompt(1, 6) }, { prompt: [...prompt(1, 4), 9, 9] }],
      { maxRunning: 1 },
      ['a', ''],
      ['a 0+6 -> a', 'b 4+2 -> b'],
    ],
    [
      'leaves nothing without a prefix cache',
      [{ prompt: prompt(1, 6) }, { prompt: [...prompt(1, 4), 9, 9] }],
      { maxRunning: 1, prefixCache: false },
      ['a', ''],
      ['a 0+6 -> a', 'b 0+6 -> b'],
    ],
    [
      'leaves nothing to those with another key',
      [{ prompt: prompt(1, 6) }, { prompt: prompt(1, 6), cacheKey: 'salt' }],
      { maxRunning: 1 },
      ['a', ''],
      ['a 0+6 -> a', 'b 0+6 -> b'],
    ],
  ])('%s', (_, requests, settings, ends, expected) => {
    const run = new Run(requests, settings);
    expect(ends.map((end) => run.step(end))).toEqual(expected);
  });

  it.each<[string, awaitsToken: boolean, next: string]>([
    ['needs no slot before it has its next token', true, 'nothing'],
    ['is computed again when it has it', false, 'a 0+5 -> a'],
  ])('that awaits its token, and was preempted, %s', (_, awaitsToken, next) => {
    const run = new Run([{ prompt: prompt(1, 4) }], { prefixCache: false });
    const plan = run.plan()!;
    run.scheduler.commit(plan);
    const [sequence] = run.sequences;
    sequence!.append(9);
    if (awaitsToken) sequence!.awaitToken();
    run.scheduler.remove(sequence!);
    Object.assign(sequence!.place, { computed: 0 });
    run.scheduler.add(sequence!);
    expect(run.show()).toBe(next);
  });

  it.each<[string, Settings, expected: string, edits: string]>([
    ['continues on a copy of the cache', {}, 'a 4+1 -> a, b 4+1 -> b', 'copy 0 to 1 until -1'],
    ['is computed again without a free slot', { slotCount: 1, maxRunning: 1 }, 'a 4+1 -> a', ''],
  ])('that is forked %s', (_, settings, expected, edits) => {
    const run = new Run([{ prompt: prompt(1, 4) }], settings);
    run.step();
    const [parent] = run.sequences;
    const child = parent!.fork(1, parent!.sampler);
    run.scheduler.fork(parent!, child);
    const plan = run.plan()!;
    expect(new Names([parent!, child]).show(plan)).toBe(expected);
    expect(showEdits(plan.edits)).toBe(edits);
  });
});

describe('a step', () => {
  /** How often the steps of a request look at its sequences, while `n` of them run or wait and end with a token each. */
  function looks(n: number): number {
    let count = 0;
    const counted = <Value>(value: Value) => ({
      get: () => {
        count += 1;
        return value;
      },
    });
    const group = Object.defineProperties({ cacheKey: '', prompt: Int32Array.of(1, 2, 3) } as Group, {
      adapter: counted(0),
      arrival: counted(0),
      priority: counted(0),
    });
    const sequences = Array.from({ length: n }, (_, index) => new Sequence(group, index, fakeSampler()));
    const scheduler = new Scheduler(LIMITS, { ...POLICY, maxRunning: 3 });
    for (const sequence of sequences) scheduler.add(sequence);
    count = 0;
    for (let step = 0; step < 20; step++) {
      const plan = scheduler.next()!;
      scheduler.commit(plan);
      for (const sequence of plan.entries.flatMap(({ samples }) => samples)) {
        sequence.append(9);
        scheduler.remove(sequence);
      }
    }
    expect(scheduler.counts().waiting).toBe(n - 60);
    return count;
  }

  it('costs about the same however many wait', () => {
    expect(looks(20_000)).toBeLessThan(3 * looks(100)); // the place in a list is found by halves
  });
});
