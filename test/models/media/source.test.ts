/** Data of media parts -> bytes, without holding the event loop. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { readSource } from '../../../src/models/media/source.ts';
import { withDefaults } from '../../../src/protocol/index.ts';

const BYTES = 15 * 2 ** 20;
const read = (data: string, maxBytes = BYTES) => {
  const url = `data:image/png${data}`;
  const part = { type: 'media', kind: 'image_url', part: { image_url: { url } } } as const;
  return readSource({ path: 'part', part }, withDefaults('MediaOptions', { maxBytes }));
};

describe('a data: URI', () => {
  it.each([
    ['base64', `;base64,${Buffer.alloc(BYTES, 7).toString('base64')}`],
    ['escapes', `,${'%07'.repeat(BYTES)}`],
    ['letters', `,${'\x07'.repeat(BYTES)}`],
  ])('is decoded in turns: %s', async (_, data) => {
    let turns = 0;
    let isDone = false;
    const done = read(data).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      await setImmediate();
      turns += 1;
    }
    expect(turns).toBeGreaterThan(5);
    expect(Buffer.compare((await done).bytes, Buffer.alloc(BYTES, 7))).toBe(0);
  });

  it.each([
    [',a%20%2F%2f%ff\u00e9', [0x61, 0x20, 0x2f, 0x2f, 0xff, 0xe9]],
    [`,${'a'.repeat(2 ** 20 - 1)}%62c`, [...new Array(2 ** 20 - 1).fill(0x61), 0x62, 0x63]],
  ])('may be percent-encoded: %#', async (data, bytes) => {
    expect(Buffer.compare((await read(data)).bytes, Uint8Array.from(bytes))).toBe(0);
  });

  it.each([',%4', ',%', ',a%4', ',%g0', ',%0g', ',%-1', ',% 1', ',\u20ac'])(
    'is refused: %s',
    async (data) => {
      await expect(read(data)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'part.image_url.url',
      });
    },
  );

  it('is measured as it is decoded', async () => {
    expect((await read(',%41%42%43', 3)).bytes).toHaveLength(3);
    for (const data of [',%41%42%43%44', ',abcd', `,${'a'.repeat(100)}`])
      await expect(read(data, 3)).rejects.toMatchObject({ code: 'TOO_LARGE' });
  });
});
