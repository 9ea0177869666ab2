/** Steps of a run that fail -> the numbers of the next ones. */
import { expect, it } from 'vitest';
import { type ErrorCode, OnpolicyError } from '../../../src/errors.ts';
import type { RunOperation, RunRequest, TrainingRunInfo } from '../../../src/protocol/index.ts';
import { TrainingRun, type TrainingRunsResource } from '../../../src/protocol/service/training-run.ts';

/** A server whose answers are given: an error, before or after the step is accepted. */
class FakeRuns {
  accepted = 0;
  isDown = false;
  readonly numbers: number[] = [];
  /** Errors of the calls, in order. Null means success. */
  readonly failures: ({ code: ErrorCode; isAccepted?: boolean } | null)[] = [];

  async call(_: string, _operation: RunOperation, { sequence }: RunRequest) {
    this.numbers.push(sequence!);
    if (this.isDown) throw new OnpolicyError('NETWORK_FAILED', 'down', { cause: { code: 'ECONNREFUSED' } });
    const failure = this.failures.shift();
    if (failure && !failure.isAccepted) throw new OnpolicyError(failure.code, 'refused');
    if (sequence !== this.accepted + 1) throw new OnpolicyError('CONFLICT', `expected ${this.accepted + 1}`);
    this.accepted++;
    if (failure) throw new OnpolicyError(failure.code, 'failed');
    return { request_id: 'x', sequence, status: 'completed', result: {} };
  }

  async retrieve(): Promise<TrainingRunInfo> {
    if (this.isDown) throw new OnpolicyError('NETWORK_FAILED', 'down');
    return { id: 'run', model_id: 'm', sequence: this.accepted } as TrainingRunInfo;
  }
}

async function openRun() {
  const runs = new FakeRuns();
  const run = new TrainingRun(runs as unknown as TrainingRunsResource, await runs.retrieve());
  const steps = async (count: number): Promise<string[]> =>
    (await Promise.allSettled(Array.from({ length: count }, () => run.optimStep()))).map((end) =>
      end.status === 'fulfilled' ? 'done' : (end.reason as OnpolicyError).code,
    );
  return { runs, run, steps };
}

it.each<[string, FakeRuns['failures'], string[], number]>([
  ['is given back if it was refused', [{ code: 'OVERLOADED' }], ['OVERLOADED'], 1],
  [
    'is taken if it was accepted',
    [{ code: 'TRAINING_DIVERGED', isAccepted: true }],
    ['TRAINING_DIVERGED'],
    2,
  ],
  ['is given back with those behind it', [{ code: 'OVERLOADED' }], ['OVERLOADED', 'CONFLICT', 'CONFLICT'], 1],
  ['is given back behind others', [null, null, { code: 'OVERLOADED' }], ['done', 'done', 'OVERLOADED'], 3],
  ['stays if it may still arrive', [{ code: 'ABORTED', isAccepted: true }], ['ABORTED'], 2],
])('the number of a step %s', async (_, failures, ends, next) => {
  const { runs, run, steps } = await openRun();
  runs.failures.push(...failures);
  expect(await steps(ends.length)).toEqual(ends);
  expect(await steps(1)).toEqual(['done']);
  expect(runs.numbers.at(-1)).toBe(next);
  expect(run.sequence).toBe(next);
});

it('a server that was down has the first step it gets', async () => {
  const { runs, steps } = await openRun();
  runs.isDown = true;
  expect(await steps(2)).toEqual(['NETWORK_FAILED', 'NETWORK_FAILED']);
  expect(await steps(1)).toEqual(['NETWORK_FAILED']);
  expect(runs.numbers).toEqual([1, 2]); // the third asks for its number first
  runs.isDown = false;
  expect(await steps(3)).toEqual(['done', 'done', 'done']);
  expect(runs.numbers).toEqual([1, 2, 1, 2, 3]);
});

it('a step that never arrived is found out with the next one', async () => {
  const { runs, steps } = await openRun();
  runs.failures.push({ code: 'ABORTED' });
  expect(await steps(1)).toEqual(['ABORTED']);
  expect(await steps(1)).toEqual(['CONFLICT']);
  expect(await steps(1)).toEqual(['done']);
  expect(runs.numbers).toEqual([1, 2, 1]);
});
