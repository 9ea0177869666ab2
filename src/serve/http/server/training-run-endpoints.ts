/** Requests about training runs -> runs, results of steps, and lists. */
import { errorAt } from '../../../errors.ts';
import { checkRequest, RUN_OPERATIONS, type RunOperation, type RunRequest } from '../../../protocol/index.ts';
import type { TrainingRunsResource } from '../../../protocol/service/index.ts';
import { type EndpointHandler, limitList, type RequestContext, unsupported } from './context.ts';
import { json } from './wire.ts';

/** Milliseconds after which a step is answered with `pending`, so that its connection is not cut. */
const WAIT_MS = 20_000;

/** `GET /v1/training/runs`. */
export const listTrainingRuns: EndpointHandler = async (context) =>
  json({ object: 'list', data: await runsOf(context).list(context.call) });

/** `GET /v1/training/requests/{id}`: the result of a step that was pending. */
export const retrieveTrainingResult: EndpointHandler = async (context) => {
  const given = context.url.searchParams.get('wait_ms');
  const wait_ms = given === null ? WAIT_MS : Number(given);
  if (!Number.isInteger(wait_ms) || wait_ms < 0)
    throw errorAt('wait_ms', 'INVALID_REQUEST', `expected an integer >= 0, got ${given}`);
  return json(await runsOf(context).result(context.id, { wait_ms }, context.call));
};

/** `POST /v1/training/runs/{id}/forward_backward` and so on. */
export function trainingStep(operation: RunOperation): EndpointHandler {
  return async (context) => {
    const body = await context.body();
    limitList(body, 'data', context.settings.maxTrajectories);
    const request = checkRequest(RUN_OPERATIONS[operation], body, context.validation) as RunRequest;
    const key = request.idempotency_key ?? context.request.headers.get('idempotency-key') ?? null;
    const given = { ...request, idempotency_key: key, wait_ms: request.wait_ms ?? WAIT_MS };
    const reply = await runsOf(context).call(context.id, operation, given, context.call);
    return json(reply, reply.status === 'pending' ? 202 : 200);
  };
}

function runsOf({ service }: RequestContext): TrainingRunsResource {
  if (!service.trainingRuns) throw unsupported('training runs');
  return service.trainingRuns;
}
