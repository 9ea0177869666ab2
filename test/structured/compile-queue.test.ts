/** Compilations run a few at a time; long ones do not keep short ones waiting, and what nobody waits for ends. */
import { expect, it } from 'vitest';
import { pending } from '../../src/common/index.ts';
import { CompileQueue } from '../../src/structured/compile-queue.ts';

const never = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A compilation that takes more work than a short one may, and ends when it is told to. */
function longOne() {
  const { promise, resolve } = pending<string | null>();
  const works: number[] = [];
  return {
    works,
    resolve,
    compile: async (_: Int32Array, work: number) => {
      works.push(work);
      return works.length === 1 ? null : await promise;
    },
  };
}

it('runs short ones while long ones wait for each other', async () => {
  const queue = new CompileQueue();
  const long = [longOne(), longOne(), longOne(), longOne()];
  const results = long.map(({ compile }) => queue.run(compile, never));
  await turn();
  expect(long.map(({ works }) => works.length)).toEqual([2, 1, 1, 1]);
  expect(long[0]!.works[1]).toBeGreaterThan(long[0]!.works[0]!);
  expect(await queue.run(async () => 'short', never)).toBe('short');
  for (const [at, { resolve }] of long.entries()) {
    resolve(`long ${at}`);
    expect(await results[at]).toBe(`long ${at}`);
  }
});

it('tells running compilations to end, and never begins the ones that wait', async () => {
  const queue = new CompileQueue();
  const [first, second] = [new AbortController(), new AbortController()];
  const gate = pending<void>();
  let attempts = 0;
  const ran = queue.run(async (cancelled) => {
    attempts += 1;
    if (attempts === 1) return null;
    await gate.promise;
    return cancelled[0] === 1 ? 'told to end' : 'not told';
  }, first.signal);
  const waiting = longOne();
  const waited = queue.run(waiting.compile, second.signal);
  waited.catch(() => {}); // looked at below
  await turn();
  second.abort();
  first.abort();
  gate.resolve();
  expect(await ran).toBe('told to end');
  await expect(waited).rejects.toMatchObject({ code: 'ABORTED' });
  expect(waiting.works).toHaveLength(1);
});

it('refuses what is too long even for a long one', async () => {
  const queue = new CompileQueue();
  await expect(queue.run(async () => null, never)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
});
