/** Events of training jobs over HTTP: as pages, and as a stream while the job runs. */
import { expect, it } from 'vitest';
import type { HandlerOptions } from '../../../src/serve/http/index.ts';
import type { MemoryServiceOptions } from '../../fakes/memory-service.ts';
import { ask, openHandler } from './exchange.ts';

const NEVER_ENDS = { stepMs: 5, gradientSteps: 100_000, isLocal: true };

async function start(memory: MemoryServiceOptions, options: HandlerOptions = {}) {
  const opened = openHandler({ models: ['memory'], ...options }, memory);
  const { body: model } = await ask(opened.handler, 'POST', '/v1/preview/models', {
    body: { base_model: 'x' },
  });
  const request = { model_id: (model as { id: string }).id, trajectory_groups: [] };
  const { body: job } = await ask(opened.handler, 'POST', '/v1/preview/training-jobs', { body: request });
  return { ...opened, path: `/v1/preview/training-jobs/${(job as { id: string }).id}` };
}

/** The events of a whole stream. */
function eventsOf(text: unknown): { id: string; type: string }[] {
  const parts = String(text).trim().split('\n\n');
  expect(parts.pop()).toBe('data: [DONE]');
  return parts.map((part) => JSON.parse(part.slice('data: '.length)));
}

it.each([
  ['that is followed', true],
  ['that is polled', false],
])('of a job %s come as a stream until it has ended, and as the same pages after it', async (_, isLocal) => {
  const { handler, path, service } = await start({ stepMs: 60, gradientSteps: 4, isLocal });
  const stream = await ask(handler, 'GET', `${path}/events?stream=true`);
  expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const events = eventsOf(stream.body);
  expect(events.map(({ type }) => type)).toEqual([
    'training_started',
    ...Array<string>(4).fill('gradient_step'),
    'training_ended',
  ]);
  const asked = service.calls.filter((call) => call.startsWith('trainingJobs.'));
  if (isLocal) expect(asked).toEqual(['trainingJobs.events', 'trainingJobs.follow']);
  else expect(asked).toContain('trainingJobs.retrieve');
  const { body: page } = await ask(handler, 'GET', `${path}/events`);
  expect((page as { data: unknown }).data).toEqual(events);
  const rest = await ask(handler, 'GET', `${path}/events?stream=true&after=${events[2]!.id}`);
  expect(eventsOf(rest.body)).toEqual(events.slice(3));
});

it('end when the reader has left', async () => {
  const { handler, path, service } = await start(NEVER_ENDS);
  const response = await handler(new Request(`http://localhost${path}/events?stream=true`));
  const reader = response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('training_started');
  await reader.cancel();
  expect(service.calls).toContain('trainingJobs.left');
  await ask(handler, 'POST', `${path}/cancel`);
});

it('end with an error when time is up', async () => {
  const { handler, path } = await start(NEVER_ENDS, { requestTimeoutMs: 250 });
  const { body } = await ask(handler, 'GET', `${path}/events?stream=true`);
  expect(String(body)).toMatch(/"code":"TIMEOUT".*\n\ndata: \[DONE\]\n\n$/);
  await ask(handler, 'POST', `${path}/cancel`);
});

it('of an unknown job, or after an unknown event, are errors', async () => {
  const { handler, path } = await start({});
  expect((await ask(handler, 'GET', `${path}/events?stream=true&after=none`)).status).toBe(404);
  const other = path.replace(/[^/]+$/, '00000000-0000-4000-8000-000000000000');
  expect((await ask(handler, 'GET', `${other}/events?stream=true`)).status).toBe(404);
});
