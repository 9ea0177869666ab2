/** A request for events of a training job -> a page of them, or a stream until the job has ended. */

import { OnpolicyError } from '../../../errors.ts';
import {
  AnswerStream,
  jobEvents,
  METHODS,
  type TrainingJobsResource,
} from '../../../protocol/service/index.ts';
import { type EndpointHandler, listQuery, unsupported } from './context.ts';
import { answerResponse } from './stream-response.ts';
import { json } from './wire.ts';

/** Milliseconds between two requests for new events of a job of another process. */
const POLL_MS = 1000;

/** `GET /v1/preview/training-jobs/{id}/events`. With `stream=true` it sends past and future events, then `[DONE]`. */
export const listJobEvents: EndpointHandler = async (context) => {
  const { id, url, call, service } = context;
  const jobs = service.trainingJobs as TrainingJobsResource | undefined;
  if (!jobs) throw unsupported(METHODS['trainingJobs.events'].what);
  const { after, limit } = listQuery(context, ['stream']);
  if (url.searchParams.get('stream') !== 'true') return json(await jobs.events(id, { after, limit }, call));
  await jobs.events(id, { after, limit: 1 }, call); // so that an unknown job gets an error response
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const events =
    jobs.follow?.(id, { after, signal }) ?? jobEvents(jobs, id, { after, pollMs: POLL_MS, signal });
  return answerResponse(
    new AnswerStream(events, () => stop.abort(new OnpolicyError('ABORTED', 'the reader has left'))),
    { ...context, charge: () => {} },
  );
};
