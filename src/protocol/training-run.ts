/** The operations of a training run, and the schema of the request of each. */

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

/** Name in a path -> its request. */
export const RUN_OPERATIONS = {
  forward: 'RunDataRequest',
  forward_backward: 'RunDataRequest',
  optim_step: 'RunStepRequest',
  save_state: 'RunSaveRequest',
  load_state: 'RunLoadRequest',
  save_weights_for_sampler: 'RunPublishRequest',
  sample: 'RunSampleRequest',
} as const;

/** What a training run can be asked for. */
export type RunOperation = keyof typeof RUN_OPERATIONS;
