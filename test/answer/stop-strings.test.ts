import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { StopScanner, StopStrings } from '../../src/answer/stop-strings.ts';

describe('StopScanner', () => {
  it.each<[string, string[], string[], { index: number; start: number; end: number } | null]>([
    ['finds a stop string', ['b'], ['abc'], { index: 0, start: 1, end: 2 }],
    ['across pieces', ['bcd'], ['ab', 'c', 'de'], { index: 0, start: 1, end: 4 }],
    ['takes the one that begins first', ['cd', 'abcd'], ['abcd'], { index: 1, start: 0, end: 4 }],
    ['at the same place the first of the list', ['ab', 'abc'], ['abc'], { index: 0, start: 0, end: 2 }],
    [
      'at the same place the first of the list, longer',
      ['abc', 'ab'],
      ['abc'],
      { index: 0, start: 0, end: 3 },
    ],
    [
      'ends with the piece that completes one',
      ['cd', 'abcde'],
      ['abcd', 'e'],
      { index: 0, start: 2, end: 4 },
    ],
    ['restarts inside a failed match', ['aab'], ['aaab'], { index: 0, start: 1, end: 4 }],
    ['emoji across units', ['👍'], ['x\ud83d', '\udc4d'], { index: 0, start: 1, end: 3 }],
    ['nothing', ['xyz'], ['xy', 'x'], null],
  ])('%s', (_, stops, pieces, expected) => {
    const scanner = new StopScanner(new StopStrings(stops));
    let found = null;
    for (const piece of pieces) found ??= scanner.push(piece);
    expect(found).toEqual(expected);
  });

  it('agrees with a plain search on every text, and holds back just what may still match', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 });
    const stop = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(letters, { maxLength: 6 }),
        fc.array(stop, { minLength: 1, maxLength: 4 }),
        (pieces, stops) => {
          const scanner = new StopScanner(new StopStrings(stops));
          let text = '';
          for (const piece of pieces) {
            const before = text.length;
            text += piece;
            const found = scanner.push(piece);
            const matches = stops
              .flatMap((string, index) =>
                Array.from(text, (_, start) => ({ index, start, end: start + string.length })).filter(
                  ({ start, end }) => end > before && text.startsWith(string, start),
                ),
              )
              .sort((a, b) => a.start - b.start || a.index - b.index);
            expect(found).toEqual(matches[0] ?? null);
            if (found) return;
            let pending = 0;
            for (const string of stops)
              for (let length = 1; length < string.length; length++)
                if (text.endsWith(string.slice(0, length))) pending = Math.max(pending, length);
            expect(scanner.pending).toBe(pending);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('reads thousands of stop strings in one pass', () => {
    const stops = Array.from({ length: 5000 }, (_, i) => `stop-${i}-end`);
    const compiled = new StopStrings(stops);
    const step = vi.spyOn(compiled, 'step');
    const scanner = new StopScanner(compiled);
    for (let i = 0; i < 1000; i++) expect(scanner.push('stop-1234-en ')).toBeNull();
    expect(step).toHaveBeenCalledTimes(1000 * 'stop-1234-en '.length);
    expect(scanner.push('stop-4999-end')?.index).toBe(4999);
  });

  it('compiles tens of thousands that have nothing in common', () => {
    const stops = Array.from({ length: 20_000 }, (_, i) => `${(i * 2654435761) % 2 ** 32} ends it, ${i}`);
    const compiled = new StopStrings(stops);
    for (const index of [0, 77, 19_999])
      expect(new StopScanner(compiled).push(`x${stops[index]}`)).toEqual({
        index,
        start: 1,
        end: stops[index]!.length + 1,
      });
  });
});
