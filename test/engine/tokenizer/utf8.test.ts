import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeRest, decodeWhole, NO_BYTES } from '../../../src/engine/tokenizer/utf8.ts';
import { bytePiece } from '../../fakes/byte-piece.ts';

describe('characters', () => {
  it('are those of the bytes together, however they are cut and whether or not they form characters', () => {
    fc.assert(
      fc.property(fc.array(bytePiece, { maxLength: 12 }), (pieces) => {
        let text = '';
        let open = NO_BYTES;
        for (const added of pieces) {
          const decoded = decodeWhole(open, Uint8Array.from(added));
          text += decoded.text;
          open = decoded.open;
          expect(open.length).toBeLessThan(4);
        }
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        expect(text + decodeRest(open)).toBe(decoder.decode(Uint8Array.from(pieces.flat())));
      }),
      { numRuns: 2000 },
    );
  });
});
