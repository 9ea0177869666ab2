/** Requests about models, checkpoints, training jobs and the server itself -> the responses of its service. */
import { innerMethod, innerOf } from '../../checked-service.ts';
import { type SftRequest, validateLogRequest, validateTrainingJobRequest } from '../../protocol/index.ts';
import { type EndpointHandler, limit, limitList, unsupported } from './context.ts';
import type { HandlerSettings } from './handler-options.ts';
import { listJobEvents } from './job-event-endpoint.ts';
import { renameOldSettings } from './old-names.ts';
import { resourceOf } from './resource-endpoints.ts';
import { json } from './wire.ts';

export const metrics: EndpointHandler = async ({ service, metrics }) => ({
  status: 200,
  headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
  body: metrics.toText(service.stats?.() ?? null),
});

export const listLoadedModels: EndpointHandler = async ({ service }) => {
  if (!service.loaded) throw unsupported('what is loaded');
  return json({ object: 'list', data: service.loaded() });
};

export const logTrajectories: EndpointHandler = async (context) => {
  const body = await context.body();
  limitTrajectories(body, context.settings);
  const request = validateLogRequest(body, context.validation);
  resourceOf(context, 'models');
  return json(await innerOf(context.service).log!(context.id, request, context.call));
};

export const showReport: EndpointHandler = async ({ service, id, request }) => {
  if (!service.report) throw unsupported('reports');
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'",
  };
  return {
    status: 200,
    headers,
    body: await service.report(id, { compare: request.url.searchParams.get('compare') }),
  };
};

export const createTrainingJob: EndpointHandler = async (context) => {
  const body = await context.body();
  limitTrajectories(body, context.settings);
  renameOldSettings(body);
  const request = validateTrainingJobRequest(body, context.validation);
  const { service, call } = context;
  const train = innerMethod(service, 'train');
  if (!train) throw unsupported('training');
  const job = await train(request, call);
  job.done.catch(() => {}); // the failure is reported by the job's endpoints
  return json({ id: job.id });
};

export const listTrainingJobEvents: EndpointHandler = async (context) =>
  listJobEvents(context, resourceOf(context, 'trainingJobs'));

export const createSftJob: EndpointHandler = async ({ body: read, settings, service, call }) => {
  const body = await read();
  limitList(body, 'data', settings.maxTrajectories);
  if (!service.sft) throw unsupported('supervised training');
  const job = await service.sft(body as SftRequest, call);
  job.done.catch(() => {}); // the failure is reported by the job's endpoints
  return json({ id: job.id });
};

export const listBaseModels: EndpointHandler = async ({ service }) => {
  if (!service.servedModels) throw unsupported('base models');
  const data = service.servedModels().map((id) => ({ id, object: 'base_model' }));
  return json({ object: 'list', data });
};

function limitTrajectories(body: unknown, { maxTrajectories }: HandlerSettings): void {
  const { trajectory_groups: groups } = (body ?? {}) as { trajectory_groups?: unknown };
  if (!Array.isArray(groups)) return;
  let count = 0;
  for (const group of groups) {
    const trajectories = (group as { trajectories?: unknown } | null)?.trajectories;
    count += Array.isArray(trajectories) ? trajectories.length : 0;
  }
  limit('trajectories', count, maxTrajectories);
}
