/** An authorized request -> the response of its endpoint. */
import { OnpolicyError } from '../../errors.ts';
import {
  afterDoor,
  type ChatCompletionRequest,
  checkChatRequest,
  type DoorOptions,
  isTraceId,
  type Model,
  validateCheckpointDeleteRequest,
  validateJobListQuery,
  validateListQuery,
  validateLogRequest,
  validateModelCreateRequest,
  validateTrainingJobRequest,
} from '../../protocol/index.ts';
import type { Service } from '../../service.ts';
import { allows } from './auth.ts';
import { readJson } from './body.ts';
import { type Outcome, toEventStream } from './event-stream.ts';
import type { HandlerSettings, Scope, Servable } from './handler-options.ts';
import type { RequestMetrics } from './metrics.ts';
import { renameOldFields } from './old-names.ts';
import type { EndpointName } from './routes.ts';
import { json, type WireRequest, type WireResponse } from './wire.ts';

/** One request with all that an endpoint needs to answer it. */
export type RequestContext = {
  readonly request: WireRequest;
  /** How bodies are checked. Only the endpoint holds a body: its unknown fields are deleted. */
  readonly door: DoorOptions;
  /** The segment at `{id}` in the path. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** Says the id of the request, once its body has one. */
  readonly setRequestId: (id: string) => void;
  /** Its signal fires when the client disconnects, time is up or the server stops. Its id is the client's own or random. */
  readonly call: { readonly signal: AbortSignal; readonly traceId: string };
  readonly service: Servable;
  readonly settings: HandlerSettings;
  readonly metrics: RequestMetrics;
  readonly toError: (error: unknown) => OnpolicyError;
  /** Marks the response as a stream. The function that it returns must be called at the end of the stream. */
  readonly beginStream: () => (outcome: Outcome) => void;
};

type EndpointHandler = (context: RequestContext) => Promise<WireResponse>;

/** The endpoints by name. */
export const endpointHandlers: Readonly<Record<EndpointName, EndpointHandler>> = {
  health: async () => json({ status: 'ok' }),
  metrics: async ({ service, metrics }) => ({
    status: 200,
    headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    body: metrics.toText(service.stats?.() ?? null),
  }),
  createCompletion,
  listServedModels: async (context) => json({ object: 'list', data: await servedModels(context) }),
  retrieveServedModel: async (context) => {
    const found = (await servedModels(context)).find(({ id }) => id === context.id);
    if (!found) throw new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${context.id.slice(0, 200)}`);
    return json(found);
  },
  createModel: async (context) => {
    const body = await readJson(context.request, context.settings);
    const valid = validateModelCreateRequest(body, context.door);
    return json(await preview(context, 'models').create(valid, context.call));
  },
  listModels: async (context) =>
    json(await preview(context, 'models').list(listQuery(context), context.call)),
  retrieveModel: async (context) => json(await preview(context, 'models').retrieve(context.id, context.call)),
  deleteModel: async (context) => json(await preview(context, 'models').delete(context.id, context.call)),
  logTrajectories: async (context) => {
    const body = await readJson(context.request, context.settings);
    limitTrajectories(body, context.settings);
    const request = validateLogRequest(body, context.door);
    const models = preview(context, 'models');
    return json(await afterDoor(models.log).call(models, context.id, request, context.call));
  },
  listCheckpoints: async (context) =>
    json(await preview(context, 'checkpoints').list(context.id, listQuery(context), context.call)),
  deleteCheckpoints: async (context) => {
    const body = await readJson(context.request, context.settings);
    const { steps } = validateCheckpointDeleteRequest(body, context.door);
    return json(await preview(context, 'checkpoints').delete(context.id, { steps }, context.call));
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
  createTrainingJob: async (context) => {
    const body = await readJson(context.request, context.settings);
    limitTrajectories(body, context.settings);
    const request = validateTrainingJobRequest(body, context.door);
    const { service, call } = context;
    if (!service.train) throw unsupported('training');
    const job = await afterDoor(service.train).call(service, request, call);
    job.done.catch(() => {}); // the failure is reported by the job's endpoints
    return json({ id: job.id });
  },
  listTrainingJobs: async (context) =>
    json(await preview(context, 'trainingJobs').list(jobQuery(context), context.call)),
  retrieveTrainingJob: async (context) =>
    json(await preview(context, 'trainingJobs').retrieve(context.id, context.call)),
  listTrainingJobEvents: async (context) => {
    const { after, limit } = listQuery(context);
    return json(await preview(context, 'trainingJobs').events(context.id, { after, limit }, context.call));
  },
  cancelTrainingJob: async (context) =>
    json(await preview(context, 'trainingJobs').cancel(context.id, context.call)),
};

async function createCompletion(context: RequestContext): Promise<WireResponse> {
  const { request, settings, scopes, call, service, setRequestId, door } = context;
  const body = (await readJson(request, settings)) as ChatCompletionRequest;
  renameOldFields(body);
  const count = Array.isArray(body?.messages) ? body.messages.length : 0;
  if (count > settings.maxMessages) throw tooMany('messages', count, settings.maxMessages);
  const { maxLogprobs, maxChoices } = settings;
  const checked = checkChatRequest(body, { ...door, maxLogprobs, maxChoices, scheduling: 'priority' });
  const { model, request_id } = checked;
  if (isTraceId(request_id)) setRequestId(request_id);
  if (model && namesFile(model) && !namedModels(context).includes(model) && !allows(scopes, ['admin']))
    throw new OnpolicyError('FORBIDDEN', 'model: this token does not allow to name files and downloads', {
      param: 'model',
    });
  const answer = await afterDoor(service.createCompletion).call(service, checked, call);
  if (!(Symbol.asyncIterator in answer)) return json(answer);
  const onEnd = context.beginStream();
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
    body: toEventStream(answer, { signal: call.signal, toError: context.toError, onEnd }),
  };
}

/** Models with a name: those of the service, then those of the option `models`. */
function namedModels({ service, settings }: Pick<RequestContext, 'service' | 'settings'>): string[] {
  return [...new Set([...(service.servedModels?.() ?? []), ...settings.models])];
}

/** Models that completions can name: those with a name, then the registered ones. */
async function servedModels(context: RequestContext): Promise<{ id: string }[]> {
  const { service, call } = context;
  const named = namedModels(context).map((id) => ({ id, object: 'model', created: 0, owned_by: 'onpolicy' }));
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

/** A resource of the service. Throws `UNSUPPORTED` if the service only answers completions. */
function preview<Name extends 'models' | 'checkpoints' | 'trainingJobs'>(
  { service }: RequestContext,
  name: Name,
): Service[Name] {
  const resource = service[name] as Service[Name] | undefined;
  if (!resource) throw unsupported('models that are trained');
  return resource;
}

function unsupported(what: string): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', `this server does not serve ${what}`);
}

function listQuery(context: RequestContext): ReturnType<typeof validateListQuery> {
  return validateListQuery(queryOf(context), { wire: true });
}

function jobQuery(context: RequestContext): ReturnType<typeof validateJobListQuery> {
  return validateJobListQuery(queryOf(context), { wire: true });
}

/** The query of a URL, its limit as a number. */
function queryOf({ request }: RequestContext): object {
  const { limit, ...query } = Object.fromEntries(request.url.searchParams);
  const count = limit !== undefined && /^\d{1,9}$/.test(limit) ? Number(limit) : limit;
  return { ...query, ...(limit === undefined ? {} : { limit: count }) };
}

/** Whether it is a path or a download, not the name of a model. */
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
