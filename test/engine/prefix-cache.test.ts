import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PrefixCache } from '../../src/engine/prefix-cache.ts';

const ids = (...tokens: number[]): Int32Array => Int32Array.from(tokens);

describe('PrefixCache', () => {
  it('finds the longest beginning within one key', () => {
    const cache = new PrefixCache();
    cache.insert('a', 1, ids(1, 2, 3, 4));
    cache.insert('a', 2, ids(1, 2, 9));
    cache.insert('b', 3, ids(1, 2, 3, 4, 5));
    expect(cache.find('a', ids(1, 2, 3, 7))).toEqual({ slots: new Set([1]), length: 3 });
    expect(cache.find('a', ids(1, 2))).toEqual({ slots: new Set([1, 2]), length: 2 });
    expect(cache.find('a', ids(2))).toBeNull();
    expect(cache.find('c', ids(1))).toBeNull();
    expect(cache.find('b', ids(1, 2, 3, 4, 5, 6))?.length).toBe(5);
  });

  it('agrees with a plain search over any history of inserts and removals', () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 8 });
    const action = fc.record({
      slot: fc.integer({ min: 0, max: 5 }),
      tokens: fc.option(tokens),
      key: fc.constantFrom('a', 'b'),
    });
    fc.assert(
      fc.property(
        fc.array(action, { maxLength: 30 }),
        tokens,
        fc.constantFrom('a', 'b'),
        (actions, wanted, key) => {
          const cache = new PrefixCache();
          const held = new Map<number, { key: string; tokens: number[] }>();
          for (const { slot, tokens: content, key: under } of actions) {
            held.delete(slot);
            if (content) cache.insert(under, slot, Int32Array.from(content));
            else cache.remove(slot);
            if (content && content.length > 0) held.set(slot, { key: under, tokens: content });
          }
          expect(cache.size).toBe(held.size);
          let best = 0;
          const slots = new Set<number>();
          for (const [slot, content] of held) {
            if (content.key !== key) continue;
            let length = 0;
            while (
              length < Math.min(wanted.length, content.tokens.length) &&
              wanted[length] === content.tokens[length]
            )
              length++;
            if (length > best) slots.clear();
            if (length >= best && length > 0) slots.add(slot);
            best = Math.max(best, length);
          }
          expect(cache.find(key, Int32Array.from(wanted))).toEqual(
            best === 0 ? null : { slots, length: best },
          );
          const isBeginning = (a: number[], b: number[]): boolean =>
            a.every((token, i) => b[i] === token) && a.length <= b.length;
          for (const [slot, { key: own, tokens: mine }] of held) {
            const others = [...held].filter(([other, { key: theirs }]) => other !== slot && theirs === own);
            expect(cache.lengthOf(slot)).toBe(mine.length);
            expect(cache.isCovered(slot)).toBe(
              others.some(([, { tokens: theirs }]) => isBeginning(mine, theirs)),
            );
            expect(cache.coveredBy(slot).sort()).toEqual(
              others
                .filter(([, { tokens: theirs }]) => isBeginning(theirs, mine))
                .map(([other]) => other)
                .sort(),
            );
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
