/** Compares the detection of repetitions with a search of every size at every token. */
import { describe, expect, it } from 'vitest';
import { RepetitionDetector } from '../../src/answer/repetition.ts';
import { bytes } from '../fakes/byte-tokenizer.ts';
import { feed, newChoice, RULES } from './choices.ts';

type Sizes = { max_pattern_size: number; min_pattern_size: number; min_count: number };

/** Compares the last tokens as text: vLLM's rule, in the plainest form. */
function isRepeated(tokens: readonly number[], sizes: Sizes): boolean {
  for (let size = sizes.min_pattern_size; size <= sizes.max_pattern_size; size++) {
    const pattern = tokens.slice(-size);
    const all = Array.from({ length: sizes.min_count }, () => pattern).flat();
    if (all.length <= tokens.length && all.join() === tokens.slice(-all.length).join()) return true;
  }
  return false;
}

/** The number of tokens at which a detector first says so, or 0. */
function firstFound(tokens: readonly number[], sizes: Sizes, maxTokens = tokens.length): number {
  const detector = new RepetitionDetector(sizes, maxTokens);
  const read: number[] = [];
  for (const token of tokens) {
    read.push(token);
    if (detector.push(read)) return read.length;
  }
  return 0;
}

describe('a repetition', () => {
  it('is found at every token at which a search finds it, in random tokens', () => {
    let state = 7;
    const below = (limit: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % limit;
    };
    let found = 0;
    for (let round = 0; round < 200; round++) {
      const min_pattern_size = 1 + below(4);
      const sizes = {
        min_pattern_size,
        max_pattern_size: min_pattern_size + below(20),
        min_count: 2 + below(4),
      };
      const detector = new RepetitionDetector(sizes, 400);
      const tokens: number[] = [];
      const kinds = 1 + below(4);
      const count = 1 + below(150);
      while (tokens.length < count) {
        const repeated = below(3) === 0 ? tokens.slice(-1 - below(20)) : [below(kinds)];
        for (const token of repeated) {
          tokens.push(token);
          const expected = isRepeated(tokens, sizes);
          if (expected) found += 1;
          if (detector.push(tokens) !== expected)
            expect({ tokens, sizes, expected }).toBe('the other result');
        }
      }
    }
    expect(found).toBeGreaterThan(500);
  });

  it.each([
    ['one token three times', [1, 1, 1], { min: 1, max: 4, count: 3 }, 3],
    ['not twice', [1, 1, 2, 2], { min: 1, max: 4, count: 3 }, 0],
    ['two tokens three times', [9, 1, 2, 1, 2, 1, 2], { min: 1, max: 2, count: 3 }, 7],
    ['longer than the largest pattern', [1, 2, 3, 1, 2, 3], { min: 1, max: 2, count: 2 }, 0],
    ['shorter than the smallest', [1, 1, 1, 2], { min: 2, max: 3, count: 2 }, 0],
    ['a smallest one that is a repetition itself', [1, 1, 1, 1], { min: 2, max: 3, count: 2 }, 4],
  ])('%s', (_, tokens, { min, max, count }, at) => {
    expect(firstFound(tokens, { min_pattern_size: min, max_pattern_size: max, min_count: count })).toBe(at);
  });

  it('is not searched for in patterns that an answer is too short for', () => {
    const sizes = { min_pattern_size: 1, max_pattern_size: 65_536, min_count: 2 ** 31 - 1 };
    expect(firstFound([1, 1, 1, 1], sizes)).toBe(0);
  });

  it('ends a choice, but not before min_tokens', () => {
    const repetition = { min_pattern_size: 1, max_pattern_size: 4, min_count: 3 };
    const end = { reason: 'length', stopReason: 'repetition_detected' };
    const short = feed(newChoice({ repetition }), bytes('so aaaaaaaa'));
    expect([short.finish, short.tokenIds.length]).toEqual([end, 6]);
    const long = feed(newChoice({ repetition, rules: { ...RULES, minTokens: 9 } }), bytes('so aaaaaaaa'));
    expect([long.finish, long.tokenIds.length]).toEqual([end, 9]);
    expect(feed(newChoice(), bytes('so aaaaaaaa')).finish).toBeNull();
  });
});
