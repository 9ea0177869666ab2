/** An authorized request -> the response of its endpoint. */
import { innerOf } from '../../checked-service.ts';
import { packageVersion } from '../../common/index.ts';
import {
  type SftRequest,
  validateCheckpointDeleteRequest,
  validateLogRequest,
  validateModelCreateRequest,
  validateTrainingJobRequest,
} from '../../protocol/index.ts';
import type { Service } from '../../service.ts';
import { loadAdapter, unloadAdapter } from './adapter-endpoints.ts';
import {
  cancelBatch,
  createBatch,
  createFile,
  deleteFile,
  listBatches,
  listFiles,
  readFileContent,
  retrieveBatch,
  retrieveFile,
} from './batch-endpoints.ts';
import { readJson } from './body.ts';
import { createCompletion, renderPrompt } from './chat-endpoints.ts';
import { type EndpointHandler, type RequestContext, tooMany, unsupported } from './context.ts';
import { createEmbeddings } from './embedding-endpoints.ts';
import type { HandlerSettings } from './handler-options.ts';
import { listJobEvents } from './job-event-endpoint.ts';
import { jobQuery, listQuery } from './list-query.ts';
import { countTokens, createMessage } from './message-endpoints.ts';
import { listServedModels, retrieveServedModel } from './model-list.ts';
import { renameOldSettings } from './old-names.ts';
import { ollamaChat, ollamaEmbed, ollamaEmbeddings, ollamaGenerate } from './ollama-endpoints.ts';
import { ollamaLoaded, ollamaPull, ollamaShow, ollamaTags, ollamaVersion } from './ollama-model-endpoints.ts';
import { classify, rerank, score } from './rank-endpoints.ts';
import {
  compactResponse,
  countInputTokens,
  createResponse,
  deleteResponse,
  listInputItems,
  retrieveResponse,
} from './response-endpoints.ts';
import type { EndpointName } from './routes.ts';
import { createTextCompletion } from './text-endpoints.ts';
import { detokenize, tokenize } from './token-endpoints.ts';
import {
  closeTrainingRun,
  createTrainingRun,
  deleteTrainingRun,
  listTrainingRuns,
  retrieveTrainingResult,
  retrieveTrainingRun,
  trainingStep,
} from './training-run-endpoints.ts';
import { createTranscription } from './transcription-endpoints.ts';
import { json } from './wire.ts';

/** The endpoints by name. */
export const endpointHandlers: Readonly<Record<EndpointName, EndpointHandler>> = {
  health: async () => json({ status: 'ok' }),
  metrics: async ({ service, metrics }) => ({
    status: 200,
    headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    body: metrics.toText(service.stats?.() ?? null),
  }),
  version: async () => json({ version: packageVersion() }),
  createCompletion,
  createTextCompletion,
  createEmbeddings,
  createTranscription,
  rerank,
  score,
  classify,
  createMessage,
  countTokens,
  createResponse,
  countInputTokens,
  compactResponse,
  retrieveResponse,
  deleteResponse,
  listInputItems,
  ollamaRoot: async () => ({
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: 'Ollama is running', // what clients of its API look for
  }),
  ollamaChat,
  ollamaGenerate,
  ollamaEmbed,
  ollamaEmbeddings,
  ollamaTags,
  ollamaShow,
  ollamaLoaded,
  ollamaPull,
  ollamaVersion,
  createFile,
  listFiles,
  retrieveFile,
  deleteFile,
  readFileContent,
  createBatch,
  listBatches,
  retrieveBatch,
  cancelBatch,
  renderPrompt,
  tokenize,
  detokenize,
  loadAdapter,
  unloadAdapter,
  listServedModels,
  retrieveServedModel,
  listLoadedModels: async ({ service }) => {
    if (!service.loaded) throw unsupported('what is loaded');
    return json({ object: 'list', data: service.loaded() });
  },
  createModel: async (context) => {
    const body = await readJson(context.request, context.settings);
    const valid = validateModelCreateRequest(body, context.validation);
    return json(await preview(context, 'models').create(valid, context.call));
  },
  listModels: async (context) =>
    json(await preview(context, 'models').list(listQuery(context), context.call)),
  retrieveModel: async (context) => json(await preview(context, 'models').retrieve(context.id, context.call)),
  deleteModel: async (context) => json(await preview(context, 'models').delete(context.id, context.call)),
  logTrajectories: async (context) => {
    const body = await readJson(context.request, context.settings);
    limitTrajectories(body, context.settings);
    const request = validateLogRequest(body, context.validation);
    preview(context, 'models');
    return json(await innerOf(context.service).log!(context.id, request, context.call));
  },
  listCheckpoints: async (context) =>
    json(await preview(context, 'checkpoints').list(context.id, listQuery(context), context.call)),
  deleteCheckpoints: async (context) => {
    const body = await readJson(context.request, context.settings);
    const { steps } = validateCheckpointDeleteRequest(body, context.validation);
    return json(await preview(context, 'checkpoints').delete(context.id, { steps }, context.call));
  },
  showReport: async ({ service, id, request }) => {
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
  },
  createTrainingJob: async (context) => {
    const body = await readJson(context.request, context.settings);
    limitTrajectories(body, context.settings);
    renameOldSettings(body);
    const request = validateTrainingJobRequest(body, context.validation);
    const { service, call } = context;
    const { train } = innerOf(service);
    if (!train) throw unsupported('training');
    const job = await train(request, call);
    job.done.catch(() => {}); // the failure is reported by the job's endpoints
    return json({ id: job.id });
  },
  listTrainingJobs: async (context) =>
    json(await preview(context, 'trainingJobs').list(jobQuery(context), context.call)),
  retrieveTrainingJob: async (context) =>
    json(await preview(context, 'trainingJobs').retrieve(context.id, context.call)),
  listTrainingJobEvents: async (context) => listJobEvents(context, preview(context, 'trainingJobs')),
  cancelTrainingJob: async (context) =>
    json(await preview(context, 'trainingJobs').cancel(context.id, context.call)),
  createSftJob: async ({ request, settings, service, call }) => {
    const body = await readJson(request, settings);
    const { data } = (body ?? {}) as { data?: unknown };
    if (Array.isArray(data) && data.length > settings.maxTrajectories)
      throw tooMany('data', data.length, settings.maxTrajectories);
    if (!service.sft) throw unsupported('supervised training');
    const job = await service.sft(body as SftRequest, call);
    job.done.catch(() => {}); // the failure is reported by the job's endpoints
    return json({ id: job.id });
  },
  listBaseModels: async ({ service }) => {
    if (!service.servedModels) throw unsupported('base models');
    const data = service.servedModels().map((id) => ({ id, object: 'base_model' }));
    return json({ object: 'list', data });
  },
  createTrainingRun,
  listTrainingRuns,
  retrieveTrainingRun,
  closeTrainingRun,
  deleteTrainingRun,
  retrieveTrainingResult,
  'training:forward': trainingStep('forward'),
  'training:forward_backward': trainingStep('forward_backward'),
  'training:optim_step': trainingStep('optim_step'),
  'training:save_state': trainingStep('save_state'),
  'training:load_state': trainingStep('load_state'),
  'training:save_weights_for_sampler': trainingStep('save_weights_for_sampler'),
  'training:sample': trainingStep('sample'),
};

/** A resource of the service. Throws `UNSUPPORTED` if the service only answers completions. */
function preview<Name extends 'models' | 'checkpoints' | 'trainingJobs'>(
  { service }: RequestContext,
  name: Name,
): Service[Name] {
  const resource = service[name] as Service[Name] | undefined;
  if (!resource) throw unsupported('models that are trained');
  return resource;
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
