import { describe, expect, it } from 'vitest';
import { bufferedIterator } from '../../src/common/buffered-iterator.ts';

/** An iterator over batches that come one turn after they were asked for; notes whether its reader has left. */
function over(batches: readonly (readonly number[] | Error | null)[]): {
  items: AsyncIterableIterator<number>;
  seen: { asked: number; left: number };
} {
  const seen = { asked: 0, left: 0 };
  const items = bufferedIterator<number>({
    next: async () => {
      const batch = batches[seen.asked++] ?? null;
      await null;
      if (batch instanceof Error) throw batch;
      return batch;
    },
    leave: () => {
      seen.left += 1;
    },
  });
  return { items, seen };
}

async function read(items: AsyncIterable<number>, into: number[] = []): Promise<number[]> {
  for await (const item of items) into.push(item);
  return into;
}

describe('an iterator over batches', () => {
  it('gives all items in their order, skips empty batches, and does not ask again after the end', async () => {
    const { items, seen } = over([[1, 2], [], [3], null]);
    expect(await read(items)).toEqual([1, 2, 3]);
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(seen).toEqual({ asked: 4, left: 0 });
  });

  it('asks for the next batch only when its items are wanted', async () => {
    const { items, seen } = over([[1, 2], [3]]);
    expect(seen.asked).toBe(0);
    await items.next();
    await items.next();
    expect(seen.asked).toBe(1);
  });

  it('answers calls that do not wait for each other in their order', async () => {
    const { items } = over([[1], [2, 3], [], [4], null]);
    const answers = await Promise.all(Array.from({ length: 6 }, () => items.next()));
    expect(answers.map(({ value }) => value)).toEqual([1, 2, 3, 4, undefined, undefined]);
  });

  it('rejects once, after what came before', async () => {
    const { items, seen } = over([[1], new Error('broken'), [2]]);
    const got: number[] = [];
    await expect(read(items, got)).rejects.toThrow('broken');
    expect(got).toEqual([1]);
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(seen).toEqual({ asked: 2, left: 0 });
  });

  it('says once that its reader has left, and gives nothing more', async () => {
    const { items, seen } = over([[1, 2], [3]]);
    for await (const _ of items) break;
    await items.return!();
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(seen).toEqual({ asked: 1, left: 1 });
  });

  it('says so also when nothing was read', async () => {
    const { items, seen } = over([[1]]);
    await items.return!();
    expect(seen).toEqual({ asked: 0, left: 1 });
  });
});
