/** Drafts that are right or wrong at known places, steps that take known times -> how many are checked, and what that gains. */
import { expect, it } from 'vitest';
import { DraftControl } from '../../src/engine/draft-control.ts';
import type { Handle } from '../../src/engine/native/index.ts';
import type { Plan } from '../../src/engine/plan.ts';
import { Sequence } from '../../src/engine/sequence.ts';
import { KnownDrafts, Speculation } from '../../src/engine/speculation.ts';
import { fakeSampler } from '../fakes/fake-sampler.ts';

const TOKENS = 640;
const RIGHT = 1;
const WRONG = 2;
/** Milliseconds of a step, as measured on 2 cores for 0.6B parameters: 16 rows take 2.8 times as long as one. */
const stepMs = (rows: number) => 27 + 3.2 * (rows - 1);

type Options = {
  /** Returns whether a draft of the token at this place is right, or null if there is no draft. */
  readonly isRight: (at: number) => boolean | null;
  /** Milliseconds of a pass of a draft model; absent: drafts cost nothing. */
  readonly passMs?: number;
  /** Statistics of earlier drafts. */
  readonly known?: KnownDrafts;
};

/** Returns the result of a draft of which 16 of 32 tokens are right: the match is found after two tokens, and lost after two others. */
function isFound(at: number): boolean | null {
  const place = at % 32;
  return place < 2 || place >= 18 ? null : place < 16;
}

/** One sequence that samples 1 all the time. */
function simulate({ isRight, passMs, known }: Options) {
  const control = new DraftControl({ batchTokens: 512, outputRows: 64, rollbackTokens: Infinity });
  const speculation = new Speculation({
    drafter: {} as Handle,
    maxTokens: 15,
    trust: 0.6,
    usesModel: passMs !== undefined,
    ...(known ? { known } : {}),
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
    const asked = passMs === undefined ? 0 : limit;
    passes += asked;
    const made = Math.max(limit, passMs === undefined ? 1 : 0);
    const drafted = Array.from({ length: made }, (_, i) => isRight(at + i));
    const none = drafted.indexOf(null);
    const found = none < 0 ? drafted : drafted.slice(0, none);
    speculation.propose(Int32Array.from(found, (right) => (right ? RIGHT : WRONG)));
    const drafting = { ms: asked * (passMs ?? 0), passes: asked, tokens: asked, sequences: 1 };
    const elapsed = stepMs(1 + drafts.length) + drafting.ms;
    control.record(plan, elapsed, asked > 0 ? drafting : undefined);
    ms += elapsed;
  }
  const gain = ((TOKENS - 1) * stepMs(1)) / ms;
  return { gain, passes, wrong: speculation.drafted - speculation.accepted };
}

it.each<[string, Options, number, number]>([
  ['all right', { isRight: () => true }, 4, 20],
  ['half right, in runs', { isRight: (at) => Math.floor(at / 16) % 2 === 0 }, 1.4, 400],
  ['half right, in runs that are found by their first tokens', { isRight: isFound }, 1.5, 200],
  ['one in ten right', { isRight: (at) => at % 10 === 0 }, 0.97, 40],
  ['none right', { isRight: () => false }, 0.99, 10],
  ['all right, of a model that takes a tenth', { isRight: () => true, passMs: 2.7 }, 2, 20],
  ['all right, of a model that takes as long', { isRight: () => true, passMs: 27 }, 0.97, 20],
  [
    'four in five right, of a model that takes a tenth',
    { isRight: (at) => at % 5 > 0, passMs: 2.7 },
    1.5,
    160,
  ],
  [
    'four in five right, of a model that takes two fifths',
    { isRight: (at) => at % 5 > 0, passMs: 11 },
    1.15,
    140,
  ],
  ['none right, of a model that takes a tenth', { isRight: () => false, passMs: 2.7 }, 0.98, 40],
])('drafts that are %s', (_, options, leastGain, mostWrong) => {
  const { gain, wrong } = simulate(options);
  expect(gain).toBeGreaterThan(leastGain);
  expect(wrong).toBeLessThanOrEqual(mostWrong);
});

/** Four answers of a model in turn. */
function answers(isRight: (answer: number, at: number) => boolean, passMs: number) {
  const known = new KnownDrafts();
  return [0, 1, 2, 3].map((answer) => simulate({ isRight: (at) => isRight(answer, at), passMs, known }));
}

it('loses next to nothing to a head that is never right, and nothing more with later answers', () => {
  const gains = answers(() => false, 11).map(({ gain }) => gain);
  expect(Math.min(...gains)).toBeGreaterThan(0.985);
  expect(gains[3]).toBeGreaterThan(gains[0]!);
});

it('finds that a head has become right', () => {
  const right = (answer: number, at: number): boolean => answer === 3 && at % 5 > 0;
  expect(answers(right, 5)[3]!.gain).toBeGreaterThan(1.15);
});

it('asks a model that does not help at growing distances', () => {
  expect(simulate({ isRight: () => true, passMs: 60 }).passes).toBeLessThan(30);
});

it('lets no step have more rows than there are, whatever became of the last drafts', () => {
  const outputRows = 8;
  const control = new DraftControl({ batchTokens: 512, outputRows, rollbackTokens: Infinity });
  const sequences = [0, 1].map((index) => {
    const speculation = new Speculation({ drafter: {} as Handle, maxTokens: 15, trust: 0.8 });
    for (let i = 0; i < 40; i++) {
      // the drafts of one are right throughout, those of the other by turns
      speculation.propose(Int32Array.of(index === 0 || i % 2 === 0 ? RIGHT : WRONG));
      speculation.observe(RIGHT);
    }
    const group = { prompt: Int32Array.of(0), cacheKey: '', adapter: 0, priority: 0, arrival: index };
    return new Sequence(group, 0, fakeSampler(), { speculation, maxOutputs: TOKENS });
  });
  const entries = sequences.map((sequence) => ({
    sequence,
    start: 1,
    count: 1,
    samples: [sequence],
    drafts: new Int32Array(0),
  }));
  control.plan({ adapter: 0, entries, edits: [], isSteady: true });
  const limits = sequences.map(({ speculation }) => Math.max(...speculation!.limits));
  expect(limits[0]! + limits[1]!).toBe(outputRows - sequences.length);
});
