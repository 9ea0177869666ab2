import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStrings } from '../../src/answer/stop-strings.ts';
import { type Finish, type StopRules, TextOut } from '../../src/answer/text-out.ts';
import { bytes, byteTokenizer, END_OF_TURN, EOS, SPECIAL } from '../fakes/byte-tokenizer.ts';

const RULES: StopRules = {
  stops: null,
  stopIds: new Set(),
  endIds: byteTokenizer.endIds,
  eosId: EOS,
  ignoreEos: false,
  minTokens: 0,
  maxTokens: 100,
  includeStop: false,
  skipSpecial: true,
  shownSpecials: new Set(),
  spacesBetween: true,
};

type Given = Partial<Omit<StopRules, 'stops' | 'stopIds'>> & { stops?: string[]; stopIds?: number[] };

function read(
  ids: number[],
  { stops, stopIds, ...rules }: Given,
): { deltas: string[]; finish: Finish | null; count: number } {
  const out = new TextOut(
    { ...RULES, ...rules, stops: stops ? new StopStrings(stops) : null, stopIds: new Set(stopIds) },
    byteTokenizer,
  );
  const deltas: string[] = [];
  let finish: Finish | null = null;
  for (const id of ids) {
    finish = out.push(id);
    deltas.push(out.takePieces().join(''));
    if (finish) break;
  }
  return { deltas, finish, count: out.count };
}

const stop = (stopReason: string | number | null): Finish => ({ reason: 'stop', stopReason });
const length: Finish = { reason: 'length', stopReason: null };

describe('TextOut', () => {
  it.each<[string, number[], Given, string, Finish | null]>([
    ['plain text', bytes('abc'), {}, 'abc', null],
    ['ends with the primary end, reason null', [...bytes('ab'), EOS], {}, 'ab', stop(null)],
    [
      'ends with another end id, its id as the reason',
      [...bytes('ab'), END_OF_TURN],
      {},
      'ab',
      stop(END_OF_TURN),
    ],
    ['ignore_eos reads over both', [97, EOS, END_OF_TURN, 98], { ignoreEos: true }, 'ab', null],
    [
      'ignore_eos with the end among the stop ids',
      [97, EOS],
      { ignoreEos: true, stopIds: [EOS] },
      'a',
      stop(EOS),
    ],
    ['a stop id is not text', bytes('abc'), { stopIds: [98] }, 'a', stop(98)],
    [
      'a stop id with include_stop is text',
      bytes('abc'),
      { stopIds: [98], includeStop: true },
      'ab',
      stop(98),
    ],
    [
      'a special stop id with include_stop is still skipped',
      [97, EOS],
      { includeStop: true },
      'a',
      stop(null),
    ],
    [
      'and shown when specials are',
      [97, EOS],
      { includeStop: true, skipSpecial: false },
      'a<eos>',
      stop(null),
    ],
    ['special tokens are skipped', [97, SPECIAL, 98], {}, 'ab', null],
    ['or shown', [97, SPECIAL, 98], { skipSpecial: false }, 'a<sp>b', null],
    ['or shown one by one', [97, SPECIAL, 98], { shownSpecials: new Set([SPECIAL]) }, 'a<sp>b', null],
    ['the last token of a length finish is text', bytes('abc'), { maxTokens: 2 }, 'ab', length],
    ['the end on the last allowed token is a stop', [97, EOS], { maxTokens: 2 }, 'a', stop(null)],
    ['cuts before a stop string', bytes('one END two'), { stops: ['END'] }, 'one ', stop('END')],
    [
      'cuts behind it with include_stop',
      bytes('one END two'),
      { stops: ['END'], includeStop: true },
      'one END',
      stop('END'),
    ],
    ['a stop string wins over length', bytes('abEND'), { stops: ['END'], maxTokens: 5 }, 'ab', stop('END')],
    [
      'half a stop string at the end is text',
      bytes('abEN'),
      { stops: ['END'], maxTokens: 4 },
      'abEN',
      length,
    ],
    [
      'a stop string equal to skipped special text never matches',
      [97, SPECIAL, 98],
      { stops: ['<sp>'] },
      'ab',
      null,
    ],
    [
      'it matches when specials are shown',
      [97, SPECIAL, 98],
      { stops: ['<sp>'], skipSpecial: false },
      'a',
      stop('<sp>'),
    ],
    ['min_tokens: no stop before', [EOS, 97, 98, EOS], { minTokens: 3 }, 'ab', stop(null)],
    [
      'min_tokens: a stop string inside the first tokens is text',
      bytes('ENDx'),
      { stops: ['END'], minTokens: 3 },
      'ENDx',
      null,
    ],
    [
      'min_tokens: one that ends later stops',
      bytes('ENDx'),
      { stops: ['END'], minTokens: 2 },
      '',
      stop('END'),
    ],
    ['min_tokens: length waits too', bytes('abcd'), { minTokens: 3, maxTokens: 3 }, 'abc', length],
    ['incomplete UTF-8 at the end becomes U+FFFD', [97, 0xf0, 0x9f], { maxTokens: 3 }, 'a\ufffd', length],
    ['a byte order mark is text', bytes('\ufeffa'), {}, '\ufeffa', null],
  ])('%s', (_, ids, rules, text, finish) => {
    const result = read(ids, rules);
    expect(result.deltas.join('')).toBe(text);
    expect(result.finish).toEqual(finish);
  });

  it('streams every character as soon as its bytes are complete', () => {
    expect(read(bytes('é👍x'), {}).deltas).toEqual(['', 'é', '', '', '', '👍', 'x']);
  });

  it('holds back only what may still become a stop string', () => {
    expect(read(bytes('aENbEND'), { stops: ['END'] }).deltas).toEqual(['a', '', '', 'ENb', '', '', '']);
    expect(read(bytes('aEN'), { stops: ['END'], includeStop: true }).deltas).toEqual(['a', 'E', 'N']);
  });

  it('gives the same text in deltas as at once, for any text and stop strings', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '👍', 'E'), maxLength: 30 });
    const stops = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'b', 'é', '👍'), minLength: 1, maxLength: 3 }),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(text, stops, fc.boolean(), (input, strings, includeStop) => {
        const ids = bytes(input);
        const { deltas, finish, count } = read(ids, {
          stops: strings,
          includeStop,
          maxTokens: Math.max(1, ids.length),
        });
        const seen = new TextDecoder().decode(Uint8Array.from(ids.slice(0, count)));
        const starts = strings
          .map((string) => ({ string, at: seen.indexOf(string) }))
          .filter(({ at }) => at >= 0);
        if (starts.length === 0) expect(deltas.join('')).toBe(seen);
        else expect(finish?.reason).toBe('stop');
        for (const delta of deltas) expect(() => encodeURIComponent(delta)).not.toThrow(); // no half of a surrogate pair
      }),
      { numRuns: 500 },
    );
  });
});
