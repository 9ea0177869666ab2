/** Calls between two peers whose messages are cloned, as between processes: values, errors, streams, aborts, and an end. */
import v8 from 'node:v8';
import { describe, expect, it } from 'vitest';
import { type Message, Peer, RemoteStream } from '../../../src/common/index.ts';
import { OnpolicyError } from '../../../src/errors.ts';

/** A peer that calls, one that serves, and what went between them. */
function connected(serve: (method: string, args: unknown[], signal: AbortSignal) => unknown) {
  const sent: Message[] = [];
  const busy: boolean[] = [];
  let batches = 0;
  const carry = (to: () => Peer) => (messages: readonly Message[]) => {
    const cloned = v8.deserialize(v8.serialize(messages)) as Message[];
    sent.push(...cloned);
    batches += 1;
    setImmediate(() => to().receive(cloned));
  };
  const host: Peer = new Peer({
    send: carry(() => child),
    serve: (method, args) => `${method} of the host: ${String(args[0])}`,
    onWaiting: (isWaiting) => void busy.push(isWaiting),
  });
  const child: Peer = new Peer({ send: carry(() => host), serve });
  return { host, child, sent, busy, batches: () => batches };
}

async function* count(to: number, taken: number[] = []): AsyncGenerator<number> {
  for (let i = 0; i < to; i++) {
    taken.push(i);
    yield i;
  }
}
const stream = async (call: Promise<unknown>): Promise<RemoteStream> => {
  const answer = await call;
  expect(answer).toBeInstanceOf(RemoteStream);
  return answer as RemoteStream;
};
const rest = async ({ parts }: RemoteStream): Promise<unknown[]> => {
  const all: unknown[] = [];
  for (let next = await parts.next(); !next.done; next = await parts.next()) all.push(next.value);
  return all;
};
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

describe('a peer', () => {
  it('gives values as they are, in both directions', async () => {
    const { host, child, busy } = connected((_, [value]) => value);
    const value = { bytes: new Uint8Array([1, 2]), seed: 2n ** 60n, none: undefined };
    expect(await host.call('echo', [value])).toEqual(value);
    expect(await child.call('log', ['x'])).toBe('log of the host: x');
    expect(busy).toEqual([true, false]);
  });

  it('gives errors with all they say', async () => {
    const detail = [{ loc: ['n'], msg: 'n: wrong', type: 'range', input: 9 }];
    const { host } = connected((method) => {
      if (method === 'other') throw new TypeError('a fault');
      throw new OnpolicyError('OVERLOADED', 'full', { detail, retryAfterMs: 5 });
    });
    const full = { code: 'OVERLOADED', message: 'full', param: 'n', detail, retryAfterMs: 5, status: 429 };
    await expect(host.call('any', [])).rejects.toMatchObject(full);
    await expect(host.call('other', [])).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
      message: 'a fault',
    });
  });

  it('fails a call that cannot be cloned, and goes on', async () => {
    const { host } = connected(() => 1);
    await expect(host.call('any', [() => {}])).rejects.toThrow('could not be cloned');
    expect(await host.call('any', [])).toBe(1);
  });

  it('streams, and sends what comes in one turn together', async () => {
    const { host, batches } = connected(() => count(100));
    const answer = await stream(host.call('count', []));
    expect(await rest(answer)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(batches()).toBeLessThan(10);
  });

  it('waits for a reader who does not read, and goes on with him', async () => {
    const taken: number[] = [];
    const { host } = connected(() => count(2000, taken));
    const answer = await stream(host.call('count', []));
    await turns();
    expect(taken.length).toBeLessThan(300);
    expect(await rest(answer)).toHaveLength(2000);
  });

  it.each(['its signal', 'stop', 'a reader who leaves'])(
    'ends a stream by %s, also one that waits',
    async (how) => {
      let ended = false;
      const { host, child } = connected(async function* (_, __, signal) {
        try {
          for (let i = 0; ; i++) {
            signal.throwIfAborted();
            yield i;
          }
        } finally {
          ended = true;
        }
      });
      const controller = new AbortController();
      const answer = await stream(host.call('endless', [], 'x', controller.signal));
      await answer.parts.next();
      await turns();
      if (how === 'its signal') controller.abort();
      else if (how === 'stop') answer.stop();
      else await answer.parts.return!();
      if (how === 'a reader who leaves') expect(await answer.parts.next()).toMatchObject({ done: true });
      else await expect(rest(answer)).rejects.toMatchObject({ code: 'ABORTED' });
      await turns();
      expect(ended).toBe(true);
      expect(child.isIdle).toBe(true);
    },
  );

  it('passes on a signal that fires while a call runs', async () => {
    const { host } = connected(
      (_, __, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new OnpolicyError('ABORTED', 'stopped'))),
        ),
    );
    const controller = new AbortController();
    const call = host.call('long', [], 'x', controller.signal);
    setImmediate(() => controller.abort('why'));
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', message: 'stopped', cause: 'why' });
  });

  it('fails all calls when the other side ends, after the parts that came', async () => {
    const { host, busy } = connected(async function* (method) {
      if (method === 'count') yield* count(5);
      await new Promise(() => {});
    });
    const read = await stream(host.call('count', [], 'the stream'));
    const unread = await stream(host.call('count', [], 'another'));
    const waiting = rest(await stream(host.call('long', [], 'the call')));
    for (let i = 0; i < 5; i++) expect(await read.parts.next()).toEqual({ done: false, value: i });
    await turns();
    host.end((what) => new OnpolicyError('BACKEND_FAILED', `lost ${what}`));
    await expect(waiting).rejects.toThrow('lost the call');
    await expect(read.parts.next()).rejects.toThrow('lost the stream');
    for (let i = 0; i < 5; i++) expect(await unread.parts.next()).toEqual({ done: false, value: i });
    await expect(unread.parts.next()).rejects.toThrow('lost another');
    await expect(host.call('later', [])).rejects.toThrow('lost later');
    expect(busy.at(-1)).toBe(false);
  });
});
