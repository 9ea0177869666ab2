/** Arbitrary bytes around the borders of characters, for properties of texts that come in pieces. */
import fc from 'fast-check';

/** Bytes that begin, continue, break and complete characters. */
export const bytePiece = fc.constantFrom(
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
