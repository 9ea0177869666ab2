/** A request for events of a training job -> a page of them, or a stream until the job has ended. */
import { AnswerStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { jobEvents } from '../../remote-job.ts';
import type { TrainingJobsResource } from '../../service.ts';
import { listQuery, type RequestContext } from './context.ts';
import { answerResponse } from './stream-response.ts';
import { json, type WireResponse } from './wire.ts';

/** How often a job of another process is asked for events that were not there yet. */
const POLL_MS = 1000;

/** `GET /v1/preview/training-jobs/{id}/events`; with `stream=true` also those to come, and `[DONE]`. */
export async function listJobEvents(
  context: RequestContext,
  jobs: TrainingJobsResource,
): Promise<WireResponse> {
  const { id, request, call } = context;
  const { after, limit } = listQuery(context);
  if (request.url.searchParams.get('stream') !== 'true')
    return json(await jobs.events(id, { after, limit }, call));
  await jobs.events(id, { after, limit: 1 }, call); // an unknown job is an answer of its own
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const events =
    jobs.follow?.(id, { after, signal }) ?? jobEvents(jobs, id, { after, pollMs: POLL_MS, signal });
  return answerResponse(
    new AnswerStream(events, () => stop.abort(new OnpolicyError('ABORTED', 'the reader has left'))),
    { ...context, charge: () => {} },
  );
}
