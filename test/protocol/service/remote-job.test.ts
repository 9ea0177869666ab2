/** Events of a job that is polled: what is asked for, and when. */
import { expect, it } from 'vitest';
import type { TrainingJobEvent, TrainingJobStatus } from '../../../src/protocol/index.ts';
import { jobEvents } from '../../../src/protocol/service/remote-job.ts';
import type { TrainingJobsResource } from '../../../src/protocol/service/service.ts';

/** A job that answers so, call by call: pages of events with these ids, and statuses. */
function scripted(answers: readonly (readonly string[] | TrainingJobStatus)[]) {
  const asked: string[] = [];
  const next = (what: string) => {
    asked.push(what);
    return answers[asked.length - 1];
  };
  const jobs = {
    retrieve: async () => ({ status: next('status') }),
    events: async (_: string, { after }: { after: string | null }) => {
      const ids = next(`events after ${after}`) as readonly string[];
      return { data: ids.map((id) => ({ id })), has_more: ids.length > 1, last_id: ids.at(-1) ?? null };
    },
  };
  return { asked, jobs: jobs as unknown as TrainingJobsResource };
}

async function idsOf(events: AsyncIterable<TrainingJobEvent>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of events) ids.push(id);
  return ids;
}

it.each<[string, (string[] | TrainingJobStatus)[], string[], string[]]>([
  [
    'the status only where nothing is new',
    [['a'], ['b'], [], 'running', ['c'], [], 'completed', []],
    ['a', 'b', 'c'],
    ['null', 'a', 'b', 'status', 'b', 'c', 'status', 'c'],
  ],
  [
    'a full page is followed at once',
    [['a', 'b'], [], 'failed', []],
    ['a', 'b'],
    ['null', 'b', 'status', 'b'],
  ],
  ['what came with its end', [[], 'cancelled', ['a']], ['a'], ['null', 'status', 'null']],
])('%s', async (_, answers, ids, calls) => {
  const { jobs, asked } = scripted(answers);
  expect(await idsOf(jobEvents(jobs, 'job', { after: null, pollMs: 1 }))).toEqual(ids);
  expect(asked.map((call) => call.replace('events after ', ''))).toEqual(calls);
});
