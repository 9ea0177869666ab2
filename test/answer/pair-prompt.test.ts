/** Pairs of texts -> the tokens that a head is given. */
import { expect, it } from 'vitest';
import { pairEncoder } from '../../src/answer/pair-prompt.ts';
import type { EmbeddingModel } from '../../src/models/index.ts';

/** A model of which each character is a token. */
function open() {
  const encoded: string[] = [];
  const head = {
    template: '',
    before: Int32Array.of(1),
    between: Int32Array.of(2),
    after: Int32Array.of(3),
  };
  const tokenizer = {
    encode: async (text: string) => {
      encoded.push(text);
      return Int32Array.from(Buffer.from(text));
    },
  };
  const model = { name: 'm', head, tokenizer } as unknown as EmbeddingModel;
  return { encode: pairEncoder(model, null), encoded };
}

it('takes texts of any length', async () => {
  const { encode } = open();
  const ids = await encode('q', 'd'.repeat(300_000));
  expect([ids.length, ...ids.subarray(0, 4), ids.at(-1)]).toEqual([300_004, 1, 113, 2, 100, 3]);
});

it('makes the tokens of a query once for all documents behind it', async () => {
  const { encode, encoded } = open();
  const pairs = ['a', 'b'].flatMap((query) => ['x', 'y', 'z'].map((text) => [query, text] as const));
  const all = await Promise.all(pairs.map(([query, text]) => encode(query, text)));
  expect(all.map((ids) => String.fromCharCode(ids[1]!, ids[3]!))).toEqual([
    'ax',
    'ay',
    'az',
    'bx',
    'by',
    'bz',
  ]);
  expect(encoded.filter((text) => text === 'a' || text === 'b')).toEqual(['a', 'b']);
});
