/** Methods of a service's resources <-> endpoints: servers make their handlers of these rows, clients their calls. */
import {
  checkOf,
  type Scope,
  type ValidationOptions,
  validateJobListQuery,
  validateListQuery,
  validateModelCreateRequest,
} from '../protocol/index.ts';

export const MODELS = '/v1/preview/models';
export const JOBS = '/v1/preview/training-jobs';
export const RUNS = '/v1/training/runs';

export type ResourceName = 'models' | 'checkpoints' | 'trainingJobs' | 'trainingRuns';

/** A method gets the id in the path, if there is one, then what `check` gives of the body or of a `GET`'s query, then the call's options. */
export type ResourceRow = readonly [
  resource: ResourceName,
  name: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  scope: Scope,
  check?: (input: unknown, options?: ValidationOptions) => object,
];

/** What is not here has an answer or arguments of its own. */
export const RESOURCE_ROWS: readonly ResourceRow[] = [
  ['models', 'create', 'POST', MODELS, 'train', validateModelCreateRequest],
  ['models', 'list', 'GET', MODELS, 'read', validateListQuery],
  ['models', 'retrieve', 'GET', `${MODELS}/{id}`, 'read'],
  ['models', 'delete', 'DELETE', `${MODELS}/{id}`, 'admin'],
  ['checkpoints', 'list', 'GET', `${MODELS}/{id}/checkpoints`, 'read', validateListQuery],
  [
    'checkpoints',
    'delete',
    'DELETE',
    `${MODELS}/{id}/checkpoints`,
    'admin',
    checkOf('CheckpointDeleteRequest'),
  ],
  ['trainingJobs', 'list', 'GET', JOBS, 'read', validateJobListQuery],
  ['trainingJobs', 'retrieve', 'GET', `${JOBS}/{id}`, 'read'],
  ['trainingJobs', 'cancel', 'POST', `${JOBS}/{id}/cancel`, 'train'],
  ['trainingRuns', 'create', 'POST', RUNS, 'train', checkOf('TrainingRunRequest')],
  ['trainingRuns', 'retrieve', 'GET', `${RUNS}/{id}`, 'read'],
  ['trainingRuns', 'close', 'POST', `${RUNS}/{id}/close`, 'train'],
  ['trainingRuns', 'delete', 'DELETE', `${RUNS}/{id}`, 'train'],
];
