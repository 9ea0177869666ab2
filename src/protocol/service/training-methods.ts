/** The methods for adapters, registered models and training: the second part of the table of methods. */
import {
  checkJobListQuery,
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkSftRequest,
  checkTrainingJobRequest,
} from '../index.ts';
import { always, checked, checkedBy, field, first, type Method } from './method.ts';

/** Prefix of the paths of models and training. Errors on these paths have a different form. */
export const PREVIEW = '/v1/preview/';
const MODELS = `${PREVIEW}models` as const;
const JOBS = `${PREVIEW}training-jobs` as const;
const RUNS = '/v1/training/runs';

const LIST = { args: ['query'], ...checked('ListQuery', checkListQuery) } as const;
const TRAINED = 'models that are trained';
/** Properties of methods that write to the home folder. */
const HOME = { what: TRAINED, atHome: true } as const;
const RUN = { what: 'training runs', atHome: true } as const;

export const TRAINING_METHODS = {
  'adapters.load': { args: ['request'], what: 'adapters', model: field(0, 'base') },
  'adapters.unload': { args: ['id'], what: 'adapters', model: first },
  loadAdapter: {
    args: ['request'],
    what: 'adapters',
    schema: 'AdapterLoadBody',
    http: ['POST', '/v1/load_lora_adapter', 'admin'],
    docs: '[adapters](model-files.md#over-http), with the option `adapterFolders`',
  },
  unloadAdapter: {
    args: ['id'],
    what: 'adapters',
    schema: 'AdapterUnloadBody',
    http: ['POST', '/v1/unload_lora_adapter', 'admin'],
    docs: '[adapters](model-files.md#over-http), with the option `adapterFolders`',
  },
  'models.create': {
    args: ['request'],
    ...HOME,
    ...checked('ModelCreateRequest', checkModelCreateRequest),
    http: ['POST', MODELS, 'train'],
    docs: 'registers a model for training',
    repeats: ({ return_existing }) => return_existing === true,
  },
  'models.list': { ...LIST, what: TRAINED, http: ['GET', MODELS, 'read'], docs: 'registered models' },
  'models.retrieve': {
    args: ['id'],
    what: TRAINED,
    http: ['GET', `${MODELS}/{id}`, 'read'],
    docs: 'registered models',
  },
  'models.delete': {
    args: ['id'],
    ...HOME,
    http: ['DELETE', `${MODELS}/{id}`, 'admin'],
    docs: 'with its checkpoints, trajectories and run',
  },
  'models.log': {
    args: ['id', 'request'],
    ...HOME,
    ...checked('LogRequest', checkLogRequest),
    http: ['POST', `${MODELS}/{id}/log`, 'train'],
    docs: 'stores trajectories and returns their metrics',
  },
  'models.export': { args: ['request'], what: TRAINED, model: field(0, 'model') },
  'checkpoints.list': {
    args: ['id', 'query'],
    what: TRAINED,
    ...checked('ListQuery', checkListQuery),
    http: ['GET', `${MODELS}/{id}/checkpoints`, 'read'],
    docs: 'checkpoints of a model',
  },
  'checkpoints.delete': {
    args: ['id', 'request'],
    ...HOME,
    ...checkedBy('CheckpointDeleteRequest'),
    http: ['DELETE', `${MODELS}/{id}/checkpoints`, 'admin'],
    docs: 'deletes the checkpoints of `{ steps }`',
  },
  'checkpoints.prune': { args: ['id', 'request'], what: TRAINED, atHome: true },
  report: {
    args: ['id', 'settings'],
    what: 'reports',
    http: ['GET', `${MODELS}/{id}/report`, 'read'],
    docs: "a page that shows the training progress; `?compare=` another model's id adds its curves",
  },
  servedModels: {
    args: [],
    what: 'base models',
    http: ['GET', `${PREVIEW}base-models`, 'read'],
    docs: 'models that a registered one can start from',
  },
  train: {
    args: ['request'],
    what: 'training',
    ...checked('TrainingJobRequest', checkTrainingJobRequest),
    http: ['POST', JOBS, 'train'],
    docs: 'returns `{ id }` when the job is queued',
    atHome: true,
  },
  sft: {
    args: ['request'],
    what: 'supervised training',
    ...checked('SftRequest', checkSftRequest),
    http: ['POST', `${PREVIEW}sft-training-jobs`, 'train'],
    docs: '[supervised training](training.md#supervised-training): the body of `runtime.sft`; returns `{ id }` of a training job',
    atHome: true,
  },
  'trainingJobs.list': {
    args: ['query'],
    what: TRAINED,
    ...checked('JobListQuery', checkJobListQuery),
    http: ['GET', JOBS, 'read'],
    docs: 'a list, optionally filtered by `model_id` and `status`',
  },
  'trainingJobs.retrieve': {
    args: ['id'],
    what: TRAINED,
    http: ['GET', `${JOBS}/{id}`, 'read'],
    docs: 'the status of a job',
  },
  'trainingJobs.events': {
    args: ['id', 'query'],
    what: TRAINED,
    ...checked('ListQuery', checkListQuery),
    http: ['GET', `${JOBS}/{id}/events`, 'read'],
    docs: 'a page; with `?stream=true` server-sent events while the job runs, `[DONE]` last',
  },
  'trainingJobs.cancel': {
    args: ['id'],
    ...HOME,
    http: ['POST', `${JOBS}/{id}/cancel`, 'train'],
    docs: 'stops a job',
    repeats: always,
  },
  'trainingRuns.create': {
    args: ['request'],
    ...RUN,
    ...checkedBy('TrainingRunRequest'),
    http: ['POST', RUNS, 'train'],
    docs: 'opens a [training run](training.md#steps-of-your-own), `{ model, rank, alpha, seed }`',
  },
  'trainingRuns.list': { args: [], what: RUN.what, http: ['GET', RUNS, 'read'], docs: 'training runs' },
  'trainingRuns.retrieve': {
    args: ['id'],
    ...RUN,
    http: ['GET', `${RUNS}/{id}`, 'read'],
    docs: 'training runs',
  },
  'trainingRuns.call': {
    args: ['id', 'operation', 'request'],
    ...RUN,
    http: ['POST', `${RUNS}/{id}/{operation}`, 'train'],
    docs: 'steps of a run: `{ request_id, sequence, status, result }`; 202 and `pending` after 20 s or `wait_ms`',
    repeats: ({ idempotency_key }) => idempotency_key != null,
  },
  'trainingRuns.result': {
    args: ['id', 'query'],
    ...RUN,
    http: ['GET', '/v1/training/requests/{id}', 'train'],
    docs: 'the result of a pending step, awaited for `?wait_ms=`',
  },
  'trainingRuns.close': {
    args: ['id'],
    ...RUN,
    http: ['POST', `${RUNS}/{id}/close`, 'train'],
    docs: 'frees the memory of a run; deletes it',
    repeats: always,
  },
  'trainingRuns.delete': {
    args: ['id'],
    ...RUN,
    http: ['DELETE', `${RUNS}/{id}`, 'train'],
    docs: 'frees the memory of a run; deletes it',
  },
} as const satisfies Readonly<Record<string, Method>>;
