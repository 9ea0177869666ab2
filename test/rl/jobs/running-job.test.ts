/** Events of a job of this process, for several readers. */
import { expect, it } from 'vitest';
import type { TrainingJobEvent } from '../../../src/protocol/index.ts';
import type { JobEvent } from '../../../src/rl/index.ts';
import { RunningJob } from '../../../src/rl/jobs/running-job.ts';
import type { OpenJob } from '../../../src/rl/store/index.ts';

function startJob() {
  let count = 0;
  const record = {
    id: 'job',
    start: async () => {},
    finish: async () => {},
    append: async (event: JobEvent) => ({ id: `e${count++}`, created: 0, ...event }),
  };
  const job = new RunningJob(record as unknown as OpenJob, new AbortController());
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = job.run(async () => {
    job.emit({ type: 'training_started', gradient_steps: 1 } as JobEvent);
    await ended;
    job.emit({ type: 'training_ended', step: 1, metrics: {} });
    return { job_id: 'job', model_id: 'm', step: 1, checkpoint_id: null, metrics: {} };
  });
  return { job, end, work };
}

async function typesOf(events: AsyncIterable<TrainingJobEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

it('come to each reader, from where it was', async () => {
  const { job, end } = startJob();
  await job.events().next();
  const [all, rest] = [typesOf(job.events()), typesOf(job.events({ after: 'E0' }))];
  end();
  expect(await all).toEqual(['training_started', 'training_ended']);
  expect(await rest).toEqual(['training_ended']);
});

it('end for a reader whose signal fires, while the job goes on', async () => {
  const { job, end, work } = startJob();
  const stop = new AbortController();
  const events = job.events({ signal: stop.signal });
  expect((await events.next()).value).toMatchObject({ type: 'training_started' });
  const next = events.next();
  stop.abort(new Error('left'));
  await expect(next).rejects.toThrow('left');
  end();
  await work;
  expect(job.status).toBe('completed');
  await expect(job.events({ signal: stop.signal }).next()).rejects.toThrow('left');
});
