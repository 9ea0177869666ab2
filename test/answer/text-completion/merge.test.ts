/** Several streams -> one: every part once, each stream in order, and an end for all when one fails. */
import { expect, it } from 'vitest';
import { type MergedStream, merge } from '../../../src/answer/text-completion/merge.ts';

/** A stream that gives `parts` one turn after the other. */
function source(parts: readonly (string | Error)[], closed: string[], name: string): MergedStream<string> {
  let at = 0;
  return {
    next: async () => {
      const part = parts[at++];
      await new Promise((resolve) => setImmediate(resolve));
      if (part instanceof Error) throw part;
      return part === undefined ? null : [part];
    },
    close: () => void closed.push(name),
  };
}

async function read(parts: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

it('gives all parts, then the last ones', async () => {
  const closed: string[] = [];
  const merged = await read(
    merge([source(['a1', 'a2', 'a3'], closed, 'a'), source(['b1'], closed, 'b')], () => ['end']),
  );
  expect(merged.filter((part) => part.startsWith('a'))).toEqual(['a1', 'a2', 'a3']);
  expect([merged.toSorted(), merged.at(-1), closed]).toEqual([['a1', 'a2', 'a3', 'b1', 'end'], 'end', []]);
  expect(await read(merge([], () => []))).toEqual([]);
});

it('closes all when one fails, and when the reader leaves', async () => {
  const closed: string[] = [];
  const failing = merge([source(['a1'], closed, 'a'), source([new Error('broken')], closed, 'b')], () => [
    'end',
  ]);
  await expect(read(failing)).rejects.toThrow('broken');
  expect(closed).toEqual(['a', 'b']);
  for await (const _ of merge([source(['c1', 'c2'], closed, 'c')], () => ['end'])) break;
  expect(closed).toEqual(['a', 'b', 'c']);
});
