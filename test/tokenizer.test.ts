import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Detokenizer, decodeWhole } from '../src/tokenizer.ts';
import { bytes, byteTokenizer } from './fakes/byte-tokenizer.ts';

const SHOWN = { skipSpecial: true, shownSpecials: new Set<number>(), spacesBetween: true };

/** Bytes that begin, continue, break and complete characters. */
const piece = fc.constantFrom(
  ...[
    [0x61],
    [0xc3],
    [0xa9],
    [0xe2, 0x82],
    [0xac],
    [0xf0, 0x9f],
    [0x98, 0x80],
    [0xff],
    [0xe0, 0x80],
    [0xef, 0xbb, 0xbf],
  ],
);

describe('text of tokens', () => {
  it('is that of their bytes together, however they are cut and whether or not they form characters', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        let text = '';
        let open: Uint8Array = new Uint8Array(0);
        for (const added of pieces) {
          const decoded = decodeWhole(open, Uint8Array.from(added));
          text += decoded.text;
          open = decoded.open;
          expect(open.length).toBeLessThan(4);
        }
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        expect(text + decoder.decode(open)).toBe(decoder.decode(Uint8Array.from(pieces.flat())));
      }),
      { numRuns: 2000 },
    );
  });

  it('does not depend on what was read before by others', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const read = (): string => {
          const detokenizer = new Detokenizer(byteTokenizer, SHOWN);
          return (
            pieces
              .flat()
              .map((id) => detokenizer.push(id))
              .join('') + detokenizer.finish()
          );
        };
        expect(read()).toBe(read());
      }),
      { numRuns: 300 },
    );
  });

  it('holds a character back until its last byte', () => {
    const detokenizer = new Detokenizer(byteTokenizer, SHOWN);
    expect(bytes('a€b').map((id) => detokenizer.push(id))).toEqual(['a', '', '', '€', 'b']);
    expect(detokenizer.finish()).toBe('');
  });
});
