/** The operations of a training run and the schemas of their requests. */

import type {
  RunDataRequest,
  RunLoadRequest,
  RunPublishRequest,
  RunSampleRequest,
  RunSaveRequest,
  RunStepRequest,
} from './generated/request-types.ts';

/** The request of any operation. */
export type RunRequest = Partial<
  RunDataRequest & RunStepRequest & RunSaveRequest & RunLoadRequest & RunPublishRequest & RunSampleRequest
>;

/** Name of an operation in a path -> the name of its request. */
export const RUN_OPERATIONS = {
  forward: 'RunDataRequest',
  forward_backward: 'RunDataRequest',
  optim_step: 'RunStepRequest',
  save_state: 'RunSaveRequest',
  load_state: 'RunLoadRequest',
  save_weights_for_sampler: 'RunPublishRequest',
  sample: 'RunSampleRequest',
} as const;

/** Name of an operation of a training run. */
export type RunOperation = keyof typeof RUN_OPERATIONS;
