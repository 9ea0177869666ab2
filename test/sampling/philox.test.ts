/** The reference's random numbers against the published vectors of Philox4x32-10. */
import { expect, it } from 'vitest';
import { philox4x32, uniformAt } from '../fakes/philox.ts';

const ONES = 0xffffffffn;

it.each([
  [
    [0n, 0n, 0n, 0n],
    [0n, 0n],
    [0x6627e8d5n, 0xe169c58dn, 0xbc57ac4cn, 0x9b00dbd8n],
  ],
  [
    [ONES, ONES, ONES, ONES],
    [ONES, ONES],
    [0x408f276dn, 0x41c83b0en, 0xa20bc7c6n, 0x6d5451fdn],
  ],
  [
    [0x243f6a88n, 0x85a308d3n, 0x13198a2en, 0x03707344n],
    [0xa4093822n, 0x299f31d0n],
    [0xd16cfe09n, 0x94fdccebn, 0x5001e420n, 0x24126ea1n],
  ],
])('counter and key of case %#', (counter, key, expected) => {
  expect(philox4x32(counter, key)).toEqual(expected);
});

it('stays below 1', () => {
  for (let position = 0; position < 1000; position++) {
    expect(uniformAt(3n, position)).toBeGreaterThanOrEqual(0);
    expect(uniformAt(3n, position)).toBeLessThan(1);
  }
});
