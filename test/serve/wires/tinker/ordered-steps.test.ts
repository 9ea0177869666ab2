/** Steps that arrive in any order, are refused, missing, or come after a pause -> the steps that a run gets. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import type { RunRequest } from '../../../../src/protocol/index.ts';
import type { TrainingRunsResource } from '../../../../src/protocol/service/index.ts';
import { Futures } from '../../../../src/serve/wires/tinker/futures.ts';
import { OrderedSteps } from '../../../../src/serve/wires/tinker/ordered-steps.ts';
import { randomNumbers } from '../../../fakes/random-numbers.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** A run that takes only the next step, and its steps so far. */
function open() {
  const got: string[] = [];
  const run = { accepted: 0 };
  const runs = {
    call: async (id: string, operation: string, { sequence, name }: RunRequest) => {
      if (sequence !== run.accepted + 1) throw new OnpolicyError('CONFLICT', `got ${sequence}`);
      run.accepted++;
      got.push(`${operation} ${name}`);
      if (name === 'wrong') throw new OnpolicyError('INVALID_REQUEST', 'it is wrong');
      return { request_id: id, sequence, status: 'completed', result: { path: name } };
    },
    retrieve: async () => ({ sequence: run.accepted }),
  } as unknown as TrainingRunsResource;
  const steps = new OrderedSteps(runs, 'run', 0);
  const send = (
    number: number,
    operation = 'forward' as Parameters<OrderedSteps['call']>[1],
    name = `${number}`,
  ) => steps.call(number, operation, { name }, {});
  return { run, got, steps, send };
}

describe('steps', () => {
  it('are sent in the order of their numbers, in whatever order they come', async () => {
    const random = randomNumbers(7);
    for (let round = 0; round < 50; round++) {
      const { got, send, steps } = open();
      const numbers = Array.from({ length: 8 }, (_, i) => i + 1);
      const arriving = [...numbers].sort(() => random() - 0.5);
      const refused = arriving.filter(() => random() < 0.2);
      const sent = await Promise.all(
        arriving.map(async (number) => {
          if (random() < 0.5) await Promise.resolve();
          if (refused.includes(number)) steps.refuse(number);
          else return await send(number);
          return null;
        }),
      );
      const left = numbers.filter((number) => !refused.includes(number));
      expect(got).toEqual(left.map((number) => `forward ${number}`));
      expect(sent.filter(Boolean)).toHaveLength(left.length);
    }
  });

  it('go on after one that failed', async () => {
    const { got, send } = open();
    await expect(send(1, 'forward', 'wrong')).rejects.toThrow('it is wrong');
    expect(await send(2)).toEqual({ path: '2' });
    expect(got).toEqual(['forward wrong', 'forward 2']);
  });

  it('have each number once', async () => {
    const { send } = open();
    await send(1);
    await expect(send(1)).rejects.toThrow('seq_id: expected 2, the next step of the model, got 1');
  });

  it('wait for a missing one for a limited time, and those that it kept waiting go on', async () => {
    vi.useFakeTimers();
    const { got, send } = open();
    const late = send(2);
    late.catch(() => {});
    await vi.advanceTimersByTimeAsync(30_000);
    await expect(late).rejects.toThrow('seq_id: expected 1, the next step of the model, got 2');
    await send(1);
    await send(3);
    expect(got).toEqual(['forward 1', 'forward 3']);
  });
});

describe('a run that was closed while its client was silent', () => {
  const wait = 61_000;

  it('continues with the next step', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { run, send } = open();
    await send(1, 'forward_backward');
    await send(2, 'optim_step');
    await send(3);
    run.accepted = 2; // it was opened again with the state after the optimizer step
    vi.advanceTimersByTime(wait);
    expect(await send(4)).toEqual({ path: '4' });
  });

  it('says that gradients are lost, and continues', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { run, send } = open();
    await send(1, 'forward_backward');
    run.accepted = 0;
    vi.advanceTimersByTime(wait);
    await expect(send(2, 'optim_step')).rejects.toThrow('gradients that no optimizer step has used are lost');
    await send(3, 'forward_backward');
    await send(4, 'optim_step');
  });
});

describe('results', () => {
  it('are read by the client that asked, also twice', async () => {
    const futures = new Futures();
    futures.begin('a', 'one', async () => ({ path: 'x' }));
    futures.begin('a', 'one', () => Promise.reject(new Error('begun twice')));
    for (let i = 0; i < 2; i++)
      expect(await futures.read('a', 'one', 1000)).toEqual({ status: 'completed', result: { path: 'x' } });
    await expect(futures.read('a', 'other', 0)).rejects.toThrow('there is no request "a"');
    futures.begin('a', 'other', async () => ({ path: 'y' }));
    expect(await futures.read('a', 'one', 1000)).toMatchObject({ result: { path: 'x' } });
    await expect(futures.read('b', 'one', 0)).rejects.toThrow('there is no request "b"');
  });

  it('are pending, failed, or forgotten a minute after they were read', async () => {
    vi.useFakeTimers();
    const futures = new Futures();
    let fail = (_: Error): void => {};
    futures.begin('a', '', () => new Promise((_, reject) => (fail = reject)));
    const reading = futures.read('a', '', 20);
    await vi.advanceTimersByTimeAsync(20);
    expect(await reading).toEqual({ status: 'pending' });
    const error = new Error('no');
    fail(error);
    expect(await futures.read('a', '', 20)).toEqual({ status: 'failed', error });
    await vi.advanceTimersByTimeAsync(60_000);
    await expect(futures.read('a', '', 0)).rejects.toThrow('there is no request');
  });

  /** Returns for each of these requests whether it is known. */
  const known = async (futures: Futures, ...ids: readonly string[]) =>
    await Promise.all(ids.map((id) => futures.read(id, '', 0).then(Boolean, () => false)));

  it('make room for new ones, those that were read first', async () => {
    const full = async () => {
      const futures = new Futures();
      for (let i = 0; i < 8192; i++) futures.begin(`${i}`, '', async () => ({}));
      await futures.read('5', '', 1000);
      futures.begin('new', '', async () => ({}));
      return futures;
    };
    expect(await known(await full(), '5', '0', 'new')).toEqual([false, true, true]);
    const fuller = await full();
    fuller.begin('newer', '', async () => ({}));
    expect(await known(fuller, '0', '1', 'newer')).toEqual([false, true, true]);
    const busy = new Futures();
    for (let i = 0; i < 8192; i++) busy.begin(`${i}`, '', () => new Promise(() => {}));
    expect(() => busy.begin('new', '', async () => ({}))).toThrow('too many requests have no result yet');
  });

  it('and requests under way have a limited size', async () => {
    const futures = new Futures();
    const end: (() => void)[] = [];
    const begin = (id: string, bytes: number) =>
      futures.begin(
        id,
        '',
        () => new Promise((resolve) => end.push(() => resolve(new Uint8Array(bytes / 2)))),
        { bytes, most: 100 },
      );
    begin('large', 1000); // alone
    expect(() => begin('small', 1)).toThrow('too many requests');
    end[0]!();
    await futures.read('large', '', 1000);
    begin('a', 60); // in place of the result, which was read
    begin('b', 40);
    expect(() => begin('c', 1)).toThrow('too many requests');
    end[1]!();
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    begin('c', 30);
    expect(await known(futures, 'large', 'a', 'b', 'c')).toEqual([false, true, true, true]);
    const stop = new AbortController();
    const reading = futures.read('b', '', 10_000, stop.signal);
    stop.abort(new Error('the client went away'));
    await expect(reading).rejects.toThrow(/abort/i);
  });
});
