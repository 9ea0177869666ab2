import { describe, expect, it } from 'vitest';
import { Shared } from '../../src/common/shared-work.ts';

describe('Shared', () => {
  it('stops the work when everyone has given up, and only then', async () => {
    let stop: AbortSignal | undefined;
    const work = new Shared<void>((signal) => {
      stop = signal;
      return new Promise(() => {});
    });
    const [first, second] = [new AbortController(), new AbortController()];
    const waits = [work.wait(first.signal), work.wait(second.signal)];
    first.abort();
    await expect(waits[0]).rejects.toMatchObject({ code: 'ABORTED' });
    expect(stop!.aborted).toBe(false);
    second.abort();
    await expect(waits[1]).rejects.toMatchObject({ code: 'ABORTED' });
    expect(stop!.aborted).toBe(true);
    expect(work.isStopped).toBe(true);
  });

  it('gives all the same result, later ones too', async () => {
    let runs = 0;
    const work = new Shared(async () => ++runs);
    expect(await Promise.all([work.wait(undefined), work.wait(new AbortController().signal)])).toEqual([
      1, 1,
    ]);
    expect(await work.wait(undefined)).toBe(1);
    expect(work.isStopped).toBe(false);
    await expect(work.wait(AbortSignal.abort())).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('tells those who come after the last one gave up to begin anew', async () => {
    const controller = new AbortController();
    const given = new Shared(() => new Promise(() => {}));
    const wait = given.wait(controller.signal);
    expect(given.isStopped).toBe(false);
    controller.abort();
    await expect(wait).rejects.toMatchObject({ code: 'ABORTED' });
    expect(given.isStopped).toBe(true);
    const finished = new Shared(async () => 1);
    await finished.wait(undefined);
    expect(finished.isStopped).toBe(false);
  });
});
