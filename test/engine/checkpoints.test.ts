import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StateCheckpoints } from '../../src/engine/checkpoints.ts';

/** A turn of a conversation: what it goes on from, and what becomes of it. */
const turn = fc.record({
  key: fc.constantFrom('', 'a'),
  tokens: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 6 }),
  bytes: fc.integer({ min: 1, max: 40 }),
  isUsed: fc.boolean(),
  /** Beginnings of this are all that is held after it. */
  held: fc.option(fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 6 }), { freq: 4 }),
});

const begins = (tokens: readonly number[], others: readonly number[]): boolean =>
  tokens.length <= others.length && tokens.every((token, at) => token === others[at]);

it('keeps the most recently used checkpoints that fit, and finds the longest one of a prompt', () => {
  let dropped = 0;
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 40 }), fc.integer({ min: 0, max: 100 }), (turns, limit) => {
      const checkpoints = new StateCheckpoints(limit);
      let kept: { number: number; key: string; tokens: number[]; bytes: number }[] = []; // oldest first
      for (const { key, tokens, bytes, isUsed, held } of turns) {
        const on = kept
          .filter((one) => one.key === key && begins(one.tokens, tokens))
          .sort((a, b) => b.tokens.length - a.tokens.length)[0];
        const found = checkpoints.find(key, Int32Array.from(tokens));
        expect(found).toEqual(on ? { number: on.number, length: on.tokens.length } : null);
        if (on && isUsed) {
          checkpoints.touch(on.number);
          kept = [...kept.filter((one) => one !== on), on];
        }
        if (on?.tokens.length !== tokens.length) {
          const number = checkpoints.begin();
          const away = checkpoints.add(number, key, Int32Array.from(tokens), bytes);
          const expected: number[] = [];
          if (bytes > limit) expected.push(number);
          else {
            while (kept.reduce((sum, one) => sum + one.bytes, bytes) > limit)
              expected.push(kept.shift()!.number);
            kept.push({ number, key, tokens, bytes });
          }
          expect(away).toEqual(expected);
          dropped += away.length;
        }
        if (held) {
          const isHeld = (_: string, one: Int32Array): boolean => begins(Array.from(one), held);
          const lost = kept.filter((one) => !begins(one.tokens, held));
          expect(checkpoints.dropUnless(isHeld)).toEqual(lost.map(({ number }) => number));
          kept = kept.filter((one) => !lost.includes(one));
        }
        expect(checkpoints.size).toBe(kept.length);
        expect(checkpoints.bytes).toBe(kept.reduce((sum, one) => sum + one.bytes, 0));
        expect(checkpoints.bytes).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: 500 },
  );
  expect(dropped).toBeGreaterThan(500);
});
