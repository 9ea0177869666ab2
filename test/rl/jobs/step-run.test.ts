/** Steps of a run whose trainer is a fake -> the order in which they are accepted, refused and closed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type { RunRequest, TrainingRunInfo, TrainingRunReply } from '../../../src/protocol/index.ts';
import { TrainingRun, type TrainingRunsResource } from '../../../src/protocol/service/training-run.ts';
import type { Trainer } from '../../../src/rl/index.ts';
import { StepRun, type StepRunTools } from '../../../src/rl/jobs/step-run.ts';
import type { StepRunRecord } from '../../../src/rl/store/index.ts';

const RECORD: StepRunRecord = {
  format: 1,
  id: 'run',
  model_id: 'model',
  base_model: 'base',
  rank: 1,
  alpha: 1,
  seed: 0,
  created: 0,
  base: { bytes: 0, modified: 0 },
  states: [],
};
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A run whose samples end when they are told to. */
function open(given: Partial<StepRunTools> = {}) {
  const samples: (() => void)[] = [];
  const trainer = {
    step: async () => ({ gradNorm: 1, isApplied: true }),
    restore: async () => {},
    abort: () => {},
  };
  const tools = {
    use: async (run, work) => {
      await run.resume(trainer as unknown as Trainer);
      const result = await work(trainer as unknown as Trainer, 1);
      await run.park({ state: async () => ({}) } as unknown as Trainer);
      return result;
    },
    begin: async () => {},
    sample: () => new Promise((resolve) => samples.push(() => resolve({}))),
    ...given,
  } as Partial<StepRunTools> as StepRunTools;
  return { run: new StepRun(RECORD, tools), samples };
}

describe('a run that is closed', () => {
  it('twice at once has saved its state when either ends', async () => {
    let saved = 0;
    const { run } = open({
      save: async (record) => {
        await settle();
        saved++;
        return record;
      },
    });
    await run.open();
    await (await run.submit('optim_step', {})).done;
    await Promise.all([run.close(), run.close()].map((closing) => closing.then(() => expect(saved).toBe(1))));
  });
});

describe('a full run', () => {
  const full = async () => {
    const opened = open();
    for (let i = 0; i < 64; i++) await opened.run.submit('sample', { idempotency_key: `${i}` });
    return opened;
  };

  it('refuses steps without a number', async () => {
    const { run } = await full();
    await expect(run.submit('sample', {})).rejects.toMatchObject({ code: 'OVERLOADED' });
  });

  it('takes those with one when there is room, in their order, longer than it waits for steps that are missing', async () => {
    const { run, samples } = await full();
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const taken: number[] = [];
      for (const sequence of [66, 65])
        void run.submit('sample', { sequence }).then((step) => taken.push(step.sequence));
      expect((await run.submit('sample', { sequence: 3, idempotency_key: '2' })).sequence).toBe(3);
      vi.advanceTimersByTime(100_000);
      await sleep(20);
      expect(taken).toEqual([]);
      while (taken.length < 2) {
        samples.shift()?.();
        await sleep(1);
      }
      expect(taken).toEqual([65, 66]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the client', () => {
  /** A client of runs that are refused as `refuse` says. */
  const connected = (refuse: (place: number) => OnpolicyError | null) => {
    const sent: (number | null | undefined)[] = [];
    const keys = new Set<string>();
    let accepted = 0;
    const runs = {
      call: async (_id: string, _operation: string, { sequence, idempotency_key }: RunRequest) => {
        const error = refuse(sent.length);
        sent.push(sequence);
        keys.add(idempotency_key!);
        if (error) throw error;
        accepted = sequence!;
        return { request_id: 'x', sequence, status: 'completed', result: {} } as TrainingRunReply;
      },
      retrieve: async () => ({ sequence: accepted }) as TrainingRunInfo,
    } as Partial<TrainingRunsResource> as TrainingRunsResource;
    return { run: new TrainingRun(runs, { id: 'run', sequence: 0 } as TrainingRunInfo), sent, keys };
  };
  const failing = (code: 'OVERLOADED' | 'NETWORK_FAILED') =>
    connected((place) => (place === 1 ? new OnpolicyError(code, 'no') : null));

  it('gives the number of a refused step to the next one', async () => {
    const { run, sent, keys } = failing('OVERLOADED');
    await run.optimStep();
    await expect(run.optimStep()).rejects.toMatchObject({ code: 'OVERLOADED' });
    await run.optimStep();
    expect(sent).toEqual([1, 2, 2]);
    expect(keys.size).toBe(3);
    expect(run.sequence).toBe(2);
  });

  it('keeps the number of a step that may have arrived', async () => {
    const { run, sent } = failing('NETWORK_FAILED');
    await run.optimStep();
    await expect(run.optimStep()).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    await run.optimStep();
    expect(sent).toEqual([1, 2, 3]);
  });

  it('gives a step that was aborted before no number', async () => {
    const { run, sent } = connected(() => null);
    const signal = AbortSignal.abort();
    await expect(run.optimStep({}, { signal })).rejects.toMatchObject({ code: 'ABORTED' });
    await run.optimStep();
    expect(sent).toEqual([1]);
  });
});
