import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Detokenizer } from '../../../src/engine/tokenizer/tokenizer.ts';
import { bytePiece } from '../../fakes/byte-piece.ts';
import { bytes, byteTokenizer } from '../../fakes/byte-tokenizer.ts';

const SHOWN = { skipSpecial: true, shownSpecials: new Set<number>(), spacesBetween: true };

describe('text of tokens', () => {
  it('does not depend on what was read before by others', () => {
    fc.assert(
      fc.property(fc.array(bytePiece, { maxLength: 8 }), (pieces) => {
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
