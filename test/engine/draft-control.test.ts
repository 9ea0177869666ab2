/** Drafts that are right or wrong at known places, steps that take known times -> how many are checked, and what that gains. */
import { expect, it } from 'vitest';
import { DraftControl } from '../../src/engine/draft-control.ts';
import type { Plan } from '../../src/engine/scheduler.ts';
import { Sequence } from '../../src/engine/sequence.ts';
import { Speculation } from '../../src/engine/speculation.ts';
import type { Handle } from '../../src/native/index.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';

const TOKENS = 640;
const RIGHT = 1;
const WRONG = 2;
/** Milliseconds of a step, as measured on 2 cores for 0.6B parameters: 16 rows take 2.8 times as long as one. */
const stepMs = (rows: number) => 27 + 3.2 * (rows - 1);

type Options = {
  /** Whether a draft of the token at this place is right. */
  readonly isRight: (at: number) => boolean;
  /** Milliseconds of a pass of a draft model; absent: drafts cost nothing. */
  readonly passMs?: number;
};

/** One sequence that samples 1 all the time. */
function simulate({ isRight, passMs }: Options) {
  const control = new DraftControl({ batchTokens: 512, outputRows: 64 });
  const speculation = new Speculation({
    drafter: {} as Handle,
    maxTokens: 15,
    trust: 0.6,
    usesModel: passMs !== undefined,
  });
  const group = { prompt: Int32Array.of(0), cacheKey: '', adapter: 0, priority: 0, arrival: 0 };
  const sequence = new Sequence(group, 0, fakeSampler(), { speculation, maxOutputs: TOKENS });
  let ms = 0;
  let passes = 0;
  sequence.append(RIGHT);
  for (let at = 1; at < TOKENS; ) {
    const drafts = speculation.wanted(TOKENS - at - 1);
    const entry = { sequence, start: at, count: 1, samples: [sequence], drafts };
    const plan: Plan = { adapter: 0, entries: [entry], edits: [], isSteady: true };
    control.plan(plan);
    speculation.check(drafts.length);
    for (const token of [...drafts, RIGHT]) {
      sequence.append(RIGHT);
      at += 1;
      if (token !== RIGHT) break;
    }
    const limit = speculation.limit;
    const drafted = passMs === undefined ? 0 : limit;
    passes += drafted;
    const made = Math.max(limit, passMs === undefined ? 1 : 0);
    speculation.propose(Int32Array.from({ length: made }, (_, i) => (isRight(at + i) ? RIGHT : WRONG)));
    const drafting = { ms: drafted * (passMs ?? 0), passes: drafted, tokens: drafted, sequences: 1 };
    const elapsed = stepMs(1 + drafts.length) + drafting.ms;
    control.record(plan, elapsed, drafted > 0 ? drafting : undefined);
    ms += elapsed;
  }
  const gain = ((TOKENS - 1) * stepMs(1)) / ms;
  return { gain, passes, wrong: speculation.drafted - speculation.accepted };
}

it.each<[string, Options, number, number]>([
  ['all right', { isRight: () => true }, 4, 20],
  ['half right, in runs', { isRight: (at) => Math.floor(at / 16) % 2 === 0 }, 1.4, 400],
  ['one in ten right', { isRight: (at) => at % 10 === 0 }, 0.97, 40],
  ['none right', { isRight: () => false }, 0.99, 10],
  ['all right, of a model that takes a tenth', { isRight: () => true, passMs: 2.7 }, 2, 20],
  ['all right, of a model that takes as long', { isRight: () => true, passMs: 27 }, 0.97, 20],
  ['none right, of a model that takes a tenth', { isRight: () => false, passMs: 2.7 }, 0.98, 40],
])('drafts that are %s', (_, options, leastGain, mostWrong) => {
  const { gain, wrong } = simulate(options);
  expect(gain).toBeGreaterThan(leastGain);
  expect(wrong).toBeLessThanOrEqual(mostWrong);
});

it('asks a model that does not help at growing distances', () => {
  expect(simulate({ isRight: () => true, passMs: 60 }).passes).toBeLessThan(30);
});
