/** Requests about models, checkpoints, training jobs and the server itself -> the responses of its service. */

import { checkPrefixCacheQuery, type SftRequest } from '../../../protocol/index.ts';
import type { TrainingJob } from '../../../protocol/service/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import { type EndpointHandler, limitConversations, limitList, unsupported } from './context.ts';
import { checkAndCall } from './method-endpoints.ts';
import { json } from './wire.ts';

export const metrics: EndpointHandler = async ({ service, metrics }) => ({
  status: 200,
  headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
  body: metrics.toText(service.stats?.() ?? null),
});

/** `GET /load`: the number of other requests that are being answered. */
export const showLoad: EndpointHandler = async ({ metrics }) => json({ server_load: metrics.active - 1 });

/** Values of flags in the query of a URL. */
const FLAGS: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false };

/** `POST /reset_prefix_cache`. As in vLLM, its settings are in the URL. */
export const resetPrefixCache: EndpointHandler = async ({ service, url, validation, call }) => {
  const given = [...url.searchParams].map(([name, value]) => [name, FLAGS[value] ?? value]);
  const query = checkPrefixCacheQuery(Object.fromEntries(given), validation);
  if (!hasMethod(service, 'resetPrefixCache')) throw unsupported('prefix caches');
  return json(await callChecked(service, 'resetPrefixCache', query, call));
};

export const listLoadedModels: EndpointHandler = async ({ service }) => {
  if (!service.loaded) throw unsupported('what is loaded');
  return json({ object: 'list', data: service.loaded() });
};

export const showReport: EndpointHandler = async ({ service, id, url }) => {
  if (!service.report) throw unsupported('reports');
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY', // for browsers that do not know frame-ancestors
  };
  return {
    status: 200,
    headers,
    body: await service.report(id, { compare: url.searchParams.get('compare') }),
  };
};

export const createTrainingJob: EndpointHandler = async (context) => {
  const job = (await checkAndCall('train', context)) as TrainingJob;
  job.done.catch(() => {}); // the failure is reported by the job's endpoints
  return json({ id: job.id });
};

export const createSftJob: EndpointHandler = async ({ body: read, settings, service, call }) => {
  const body = await read();
  limitList(body, 'data', settings.maxTrajectories);
  limitConversations(body, settings.maxMessages);
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
