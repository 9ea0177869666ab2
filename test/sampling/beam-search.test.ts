import { describe, expect, it } from 'vitest';
import { BeamSearch, type Expansion, type Hypothesis, stepsOf } from '../../src/sampling/beam-search.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';

/** A random model: log-probabilities of each next token, a function of the tokens before it. */
type Model = { readonly vocabSize: number; next(tokens: readonly number[]): number[] };

type Case = {
  readonly model: Model;
  readonly width: number;
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly lengthPenalty: number;
  readonly endIds: ReadonlySet<number>;
  readonly eosId: number;
  /** Two tokens in a row that end the text. */
  readonly stop: readonly [number, number] | null;
};

type Found = { readonly tokens: number[]; readonly end: string; readonly value: number };

function randomModel(seed: number, vocabSize: number, sharpness: number): Model {
  return {
    vocabSize,
    next(tokens) {
      const random = randomNumbers(
        tokens.reduce((hash, token) => Math.imul(hash, 31) + token + 7, seed * 7919 + 1),
      );
      const logits = Array.from({ length: vocabSize }, () => random() * sharpness);
      const sum = Math.log(logits.reduce((total, logit) => total + Math.exp(logit), 0));
      return logits.map((logit) => logit - sum);
    },
  };
}

function randomCase(seed: number, isExhaustive: boolean): Case {
  const random = randomNumbers(seed * 104729 + 17);
  const pick = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1));
  const vocabSize = pick(2, 5);
  const maxTokens = pick(1, isExhaustive ? 4 : 8);
  return {
    model: randomModel(seed, vocabSize, 4),
    width: isExhaustive ? vocabSize ** maxTokens : pick(1, 6),
    promptTokens: pick(1, 5),
    maxTokens,
    lengthPenalty: [0, 0.5, 1, 2, -1][pick(0, 4)]!,
    endIds: new Set([[0], [0, 1], []][pick(0, 2)]!),
    eosId: 0,
    stop: random() < 0.3 ? [pick(0, vocabSize - 1), pick(0, vocabSize - 1)] : null,
  };
}

function endOf(tokens: readonly number[], { endIds, stop }: Case): 'token' | 'text' | null {
  if (endIds.has(tokens.at(-1)!)) return 'token';
  return stop && tokens.length > 1 && tokens.at(-2) === stop[0] && tokens.at(-1) === stop[1] ? 'text' : null;
}

function valueFor(score: number, tokens: readonly number[], end: string, each: Case): number {
  const counted = tokens.length - (end === 'token' || tokens.at(-1) === each.eosId ? 1 : 0);
  return score / (each.promptTokens + counted) ** each.lengthPenalty;
}

/** The candidates of one beam: the best 2 * width, as a sampler hands them out. */
function expand(tokens: readonly number[], { model, width }: Case): Expansion {
  const scores = model.next(tokens);
  const ids = scores.map((_, id) => id).sort((a, b) => scores[b]! - scores[a]!);
  ids.length = Math.min(ids.length, 2 * width);
  return { ids, scores: ids.map((id) => scores[id]!) };
}

const tokensOf = (hypothesis: Hypothesis): number[] => stepsOf(hypothesis.path).map(({ token }) => token);

function search(each: Case): { found: Found[]; steps: number } {
  const beams = new BeamSearch({
    ...each,
    endsText: (path) =>
      endOf(
        stepsOf(path).map(({ token }) => token),
        { ...each, endIds: new Set() },
      ) === 'text',
  });
  let steps = 0;
  while (!beams.isDone) {
    const before = beams.live.map((path) => stepsOf(path).map(({ token }) => token));
    const parents = beams.step(before.map((tokens) => expand(tokens, each)));
    steps += 1;
    for (const [i, path] of beams.live.entries())
      expect(
        stepsOf(path)
          .slice(0, -1)
          .map(({ token }) => token),
      ).toEqual(before[parents[i]!]);
    expect(beams.live.length).toBeLessThanOrEqual(each.width);
  }
  return {
    found: beams.results().map((one) => ({ tokens: tokensOf(one), end: one.end, value: one.value })),
    steps,
  };
}

/** Every hypothesis there is, best first. */
function enumerate(each: Case): Found[] {
  const all: Found[] = [];
  const visit = (tokens: number[], score: number): void => {
    for (const [token, logprob] of each.model.next(tokens).entries()) {
      const grown = [...tokens, token];
      const end = endOf(grown, each) ?? (grown.length === each.maxTokens ? 'length' : null);
      if (end) all.push({ tokens: grown, end, value: valueFor(score + logprob, grown, end, each) });
      else visit(grown, score + logprob);
    }
  };
  visit([], 0);
  return all.sort((a, b) => b.value - a.value);
}

/** Beam search as its definition says, to the last step. */
function plainBeamSearch(each: Case): Found[] {
  const done: Found[] = [];
  let live: { tokens: number[]; score: number }[] = [{ tokens: [], score: 0 }];
  for (let count = 0; count < each.maxTokens; count++) {
    const open: typeof live = [];
    for (const { tokens, score } of live) {
      const { ids, scores } = expand(tokens, each);
      for (const [i, id] of Array.from(ids).entries()) {
        const grown = { tokens: [...tokens, id], score: score + scores[i]! };
        const end = endOf(grown.tokens, each);
        if (end)
          done.push({ tokens: grown.tokens, end, value: valueFor(grown.score, grown.tokens, end, each) });
        else open.push(grown);
      }
    }
    live = open.sort((a, b) => b.score - a.score).slice(0, each.width);
  }
  for (const { tokens, score } of live)
    done.push({ tokens, end: 'length', value: valueFor(score, tokens, 'length', each) });
  return done.sort((a, b) => b.value - a.value).slice(0, each.width);
}

function expectSame(found: readonly Found[], expected: readonly Found[]): void {
  expect(found.map(({ tokens, end }) => ({ tokens, end }))).toEqual(
    expected.map(({ tokens, end }) => ({ tokens, end })),
  );
  for (const [i, { value }] of found.entries()) expect(value).toBeCloseTo(expected[i]!.value, 9);
}

describe('beam search', () => {
  it('with enough beams finds what an exhaustive search finds, in 300 random models', () => {
    let hypotheses = 0;
    for (let seed = 0; seed < 300; seed++) {
      const each = randomCase(seed, true);
      const all = enumerate(each);
      hypotheses += all.length;
      expectSame(search(each).found, all.slice(0, each.width));
    }
    expect(hypotheses).toBeGreaterThan(10_000);
  });

  it('with few beams finds what its definition finds, in 500 random models, and often earlier', () => {
    let saved = 0;
    for (let seed = 1000; seed < 1500; seed++) {
      const each = randomCase(seed, false);
      const { found, steps } = search(each);
      expectSame(found, plainBeamSearch(each));
      saved += each.maxTokens - steps;
    }
    expect(saved).toBeGreaterThan(200);
  });

  it('counts the prompt for the length, and not the token that ends', () => {
    const scores = [-1, -2];
    const beams = new BeamSearch({
      width: 2,
      promptTokens: 3,
      maxTokens: 2,
      lengthPenalty: 1,
      endIds: new Set([0]),
      eosId: 0,
      endsText: () => false,
    });
    expect(beams.step([{ ids: [0, 1], scores }])).toEqual([0]);
    expect(beams.step([{ ids: [0, 1], scores }])).toEqual([0]);
    expect(beams.results().map(({ end, value }) => [end, value])).toEqual([
      ['token', -1 / 3], // one token, not counted
      ['token', -3 / 4],
    ]);
  });

  it('ends when no live beam can come among the best', () => {
    const beams = new BeamSearch({
      width: 1,
      promptTokens: 1,
      maxTokens: 100,
      lengthPenalty: 0,
      endIds: new Set([0]),
      eosId: 0,
      endsText: () => false,
    });
    beams.step([{ ids: [0, 1], scores: [-0.1, -2] }]);
    expect(beams.isDone).toBe(true);
    expect(beams.results().map(({ value }) => value)).toEqual([-0.1]);
  });

  it('gives fewer hypotheses where there are no more, and none where there are none', () => {
    const options = {
      width: 3,
      promptTokens: 1,
      maxTokens: 2,
      lengthPenalty: 1,
      eosId: 9,
      endsText: () => false,
    };
    const one = new BeamSearch({ ...options, endIds: new Set<number>() });
    one.step([{ ids: [4], scores: [-1] }]);
    one.step([{ ids: [4], scores: [-1] }]);
    expect(one.results()).toHaveLength(1);
    const none = new BeamSearch({ ...options, endIds: new Set<number>() });
    none.step([{ ids: [], scores: [] }]);
    expect(none.isDone).toBe(true);
    expect(none.results()).toEqual([]);
  });

  it('stands powers that overflow', () => {
    for (const lengthPenalty of [1e6, -1e6]) {
      const beams = new BeamSearch({
        width: 1,
        promptTokens: 5,
        maxTokens: 2,
        lengthPenalty,
        endIds: new Set<number>(),
        eosId: 0,
        endsText: () => false,
      });
      beams.step([{ ids: [1], scores: [0] }]);
      beams.step([{ ids: [1], scores: [-1] }]);
      expect(beams.results()[0]!.value).not.toBeNaN();
    }
  });
});
