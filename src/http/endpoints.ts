/** What each endpoint does: a request that may be made -> the service's answer as a response. */
import { OnpolicyError } from '../errors.ts';
import {
  type ChatCompletionRequest,
  checkChatRequest,
  dropUnknownFields,
  type LogRequest,
  type Model,
  type TrainingJobRequest,
  validateCheckpointDeleteRequest,
  validateListQuery,
  validateLogRequest,
  validateModelCreateRequest,
  validateTrainingJobRequest,
} from '../protocol/index.ts';
import type { Service } from '../service.ts';
import { allows } from './auth.ts';
import { readJson } from './body.ts';
import { type Outcome, toEventStream } from './event-stream.ts';
import { json, type WireRequest, type WireResponse } from './exchange.ts';
import type { RequestMetrics } from './metrics.ts';
import type { HandlerSettings, Scope, Servable } from './options.ts';
import type { EndpointName } from './routes.ts';

/** What an endpoint may use. */
export type Exchange = {
  readonly request: WireRequest;
  /** What stands for `{id}` in the path. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** The client's own id for the request, or one that was made. */
  readonly requestId: string;
  /** Whether the client gave it by header: then it wins over the body's. */
  readonly isIdGiven: boolean;
  /** Its signal fires when the client goes away, time is up or the server stops. */
  readonly call: { readonly signal: AbortSignal };
  readonly service: Servable;
  readonly settings: HandlerSettings;
  readonly metrics: RequestMetrics;
  readonly toError: (error: unknown) => OnpolicyError;
  /** Says that the answer goes on after the response was made, and when it is over. */
  readonly hold: () => (outcome: Outcome) => void;
};

type Work = (exchange: Exchange) => Promise<WireResponse>;

/** The endpoints by name. */
export const work: Readonly<Record<EndpointName, Work>> = {
  health: async () => json({ status: 'ok' }),
  metrics: async ({ service, metrics }) => ({
    status: 200,
    headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    body: metrics.toText(service.stats?.() ?? null),
  }),
  createCompletion,
  listServedModels: async (exchange) => json({ object: 'list', data: await servedModels(exchange) }),
  retrieveServedModel: async (exchange) => {
    const found = (await servedModels(exchange)).find(({ id }) => id === exchange.id);
    if (!found) throw new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${exchange.id.slice(0, 200)}`);
    return json(found);
  },
  createModel: async (exchange) => {
    const body = await readJson(exchange.request, exchange.settings);
    const valid = validateModelCreateRequest(body, { wire: true });
    return json(await preview(exchange, 'models').create(valid, exchange.call));
  },
  listModels: async (exchange) =>
    json(await preview(exchange, 'models').list(listQuery(exchange), exchange.call)),
  retrieveModel: async (exchange) =>
    json(await preview(exchange, 'models').retrieve(exchange.id, exchange.call)),
  deleteModel: async (exchange) => json(await preview(exchange, 'models').delete(exchange.id, exchange.call)),
  logTrajectories: async (exchange) => {
    const body = await readJson(exchange.request, exchange.settings);
    limitTrajectories(body, exchange.settings);
    validateLogRequest(body, { wire: true });
    dropUnknownFields('LogRequest', body);
    return json(await preview(exchange, 'models').log(exchange.id, body as LogRequest, exchange.call));
  },
  listCheckpoints: async (exchange) =>
    json(await preview(exchange, 'checkpoints').list(exchange.id, listQuery(exchange), exchange.call)),
  deleteCheckpoints: async (exchange) => {
    const body = await readJson(exchange.request, exchange.settings);
    const { steps } = validateCheckpointDeleteRequest(body, { wire: true });
    return json(await preview(exchange, 'checkpoints').delete(exchange.id, { steps }, exchange.call));
  },
  showReport: async ({ service, id }) => {
    if (!service.report) throw unsupported('reports');
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'",
    };
    return { status: 200, headers, body: await service.report(id) };
  },
  createTrainingJob: async (exchange) => {
    const body = await readJson(exchange.request, exchange.settings);
    limitTrajectories(body, exchange.settings);
    validateTrainingJobRequest(body, { wire: true });
    dropUnknownFields('TrainingJobRequest', body);
    if (!exchange.service.train) throw unsupported('training');
    const job = await exchange.service.train(body as TrainingJobRequest, exchange.call);
    job.done.catch(() => {}); // whoever asks for the job hears of it
    return json({ id: job.id });
  },
  retrieveTrainingJob: async (exchange) =>
    json(await preview(exchange, 'trainingJobs').retrieve(exchange.id, exchange.call)),
  listTrainingJobEvents: async (exchange) => {
    const { after, limit } = listQuery(exchange);
    return json(await preview(exchange, 'trainingJobs').events(exchange.id, { after, limit }, exchange.call));
  },
  cancelTrainingJob: async (exchange) =>
    json(await preview(exchange, 'trainingJobs').cancel(exchange.id, exchange.call)),
};

async function createCompletion(exchange: Exchange): Promise<WireResponse> {
  const { request, settings, scopes, call, service, requestId, isIdGiven } = exchange;
  const body = (await readJson(request, settings)) as ChatCompletionRequest;
  const count = Array.isArray(body?.messages) ? body.messages.length : 0;
  if (count > settings.maxMessages) throw tooMany('messages', count, settings.maxMessages);
  checkChatRequest(body, { wire: true, maxLogprobs: settings.maxLogprobs, scheduling: 'priority' });
  dropUnknownFields('ChatCompletionRequest', body);
  if (
    body.model &&
    namesFile(body.model) &&
    !settings.models.includes(body.model) &&
    !allows(scopes, ['admin'])
  )
    throw new OnpolicyError('FORBIDDEN', 'model: this token does not allow to name files and downloads', {
      param: 'model',
    });
  const request_id = isIdGiven ? requestId : (body.request_id ?? requestId);
  const answer = await service.createCompletion({ ...body, request_id }, call);
  if (!(Symbol.asyncIterator in answer)) return json(answer);
  const onEnd = exchange.hold();
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
    body: toEventStream(answer, { signal: call.signal, toError: exchange.toError, onEnd }),
  };
}

/** Models as clients of completions know them: the names that were given, then the registered ones. */
async function servedModels({ service, settings, call }: Exchange): Promise<{ id: string }[]> {
  const named = settings.models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'onpolicy' }));
  const registered: Model[] = [];
  for (let after: string | null = null; service.models; ) {
    const page = await service.models.list({ order: 'asc', limit: 100, after }, call);
    registered.push(...page.data);
    if (!page.has_more || page.last_id === null) break;
    after = page.last_id;
  }
  return [
    ...named,
    ...registered.map(({ id, name, created }) => ({
      id: name ?? id,
      object: 'model',
      created,
      owned_by: 'onpolicy',
    })),
  ];
}

/** A resource of the service; `UNSUPPORTED` when it only answers requests. */
function preview<Name extends 'models' | 'checkpoints' | 'trainingJobs'>(
  { service }: Exchange,
  name: Name,
): Service[Name] {
  const resource = service[name] as Service[Name] | undefined;
  if (!resource) throw unsupported('models that are trained');
  return resource;
}

function unsupported(what: string): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', `this server does not serve ${what}`);
}

function listQuery({ request }: Exchange): ReturnType<typeof validateListQuery> {
  const { limit, ...query } = Object.fromEntries(request.url.searchParams);
  return validateListQuery(
    { ...query, ...(limit === undefined ? {} : { limit: /^\d{1,9}$/.test(limit) ? Number(limit) : limit }) },
    { wire: true },
  );
}

/** A path or a download, not a name that the service was given. */
function namesFile(model: string): boolean {
  return /[/\\:]|\.gguf$/i.test(model);
}

function limitTrajectories(body: unknown, { maxTrajectories }: HandlerSettings): void {
  const { trajectory_groups: groups } = (body ?? {}) as { trajectory_groups?: unknown };
  if (!Array.isArray(groups)) return;
  let count = 0;
  for (const group of groups) {
    const trajectories = (group as { trajectories?: unknown } | null)?.trajectories;
    count += Array.isArray(trajectories) ? trajectories.length : 0;
  }
  if (count > maxTrajectories) throw tooMany('trajectories', count, maxTrajectories);
}

function tooMany(what: string, count: number, most: number): OnpolicyError {
  return new OnpolicyError('TOO_LARGE', `${what}: expected at most ${most}, got ${count}`);
}
