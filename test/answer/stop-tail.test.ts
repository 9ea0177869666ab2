import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStrings } from '../../src/answer/stop-strings.ts';
import { EMPTY_TAIL, extendTail, type StopTail } from '../../src/answer/stop-tail.ts';
import { type StopRules, TextOut } from '../../src/answer/text-out.ts';
import { bytes, byteTokenizer, SPECIAL } from '../fakes/byte-tokenizer.ts';

function rules(stops: string[]): StopRules {
  return {
    stops: new StopStrings(stops),
    stopIds: new Set(),
    endIds: new Set(),
    eosId: -1,
    ignoreEos: false,
    minTokens: 0,
    maxTokens: Number.POSITIVE_INFINITY,
    includeStop: false,
    skipSpecial: true,
    shownSpecials: new Set(),
    spacesBetween: true,
  };
}

/** Tokens until a stop string is complete, or all of them. */
function tokensRead(ids: readonly number[], stops: string[]): number {
  let tail: StopTail | null = EMPTY_TAIL;
  for (const [at, id] of ids.entries()) {
    tail = extendTail(tail, id, rules(stops), byteTokenizer);
    if (!tail) return at + 1;
  }
  return ids.length;
}

describe('a stop tail', () => {
  it('ends where the text of a choice ends', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'é', '€', '😀', '\n'),
      minLength: 1,
      maxLength: 12,
    });
    const stop = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '€', '😀'), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(text, fc.array(stop, { minLength: 1, maxLength: 3 }), (all, stops) => {
        const out = new TextOut(rules(stops), byteTokenizer);
        const ids = bytes(all);
        let read = 0;
        while (read < ids.length && !out.push(ids[read++]!));
        expect(tokensRead(ids, stops)).toBe(read);
      }),
      { numRuns: 500 },
    );
  });

  it('does not read what is not shown', () => {
    expect(tokensRead([...bytes('a'), SPECIAL, ...bytes('bc')], ['ab'])).toBe(3);
    expect(tokensRead([SPECIAL], ['<sp>'])).toBe(1);
    const shown = { ...rules(['<sp>']), skipSpecial: false };
    expect(extendTail(EMPTY_TAIL, SPECIAL, shown, byteTokenizer)).toBeNull();
    const marker = { ...rules(['<sp>']), shownSpecials: new Set([SPECIAL]) };
    expect(extendTail(EMPTY_TAIL, SPECIAL, marker, byteTokenizer)).toBeNull();
  });

  it('shares nothing between texts that branch', () => {
    const stem = extendTail(EMPTY_TAIL, 0xe2, rules(['€']), byteTokenizer)!;
    const one = extendTail(stem, 0x82, rules(['€']), byteTokenizer)!;
    expect(extendTail(stem, 0x83, rules(['€']), byteTokenizer)).not.toBeNull();
    expect(extendTail(one, 0xac, rules(['€']), byteTokenizer)).toBeNull();
  });
});
