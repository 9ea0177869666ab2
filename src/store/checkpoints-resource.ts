/** A store -> `runtime.checkpoints`. */
import {
  type CheckpointDeletion,
  validateCheckpointDeleteRequest,
  validateListQuery,
} from '../protocol/index.ts';
import type { CallOptions, CheckpointsResource } from '../service.ts';
import { type PruneRequest, stepsToPrune } from './prune.ts';
import type { Store } from './store.ts';

/** Checkpoints of this process's store. */
export interface LocalCheckpointsResource extends CheckpointsResource {
  /**
   * Deletes all but the best checkpoints by a metric, and the newest.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields
   */
  prune(modelId: string, request: PruneRequest, options?: CallOptions): Promise<CheckpointDeletion>;
}

/** Checkpoints of a store's models. `store` throws if the runtime is closed. */
export function checkpointsResource(store: () => Store): LocalCheckpointsResource {
  return {
    list: async (modelId, query) => await store().listCheckpoints(modelId, validateListQuery(query)),
    delete: async (modelId, request, { signal }: CallOptions = {}) => {
      const { steps } = validateCheckpointDeleteRequest(request);
      return await store().deleteCheckpoints(modelId, steps, signal);
    },
    prune: async (modelId, request, { signal }: CallOptions = {}) => {
      const steps = stepsToPrune(await store().allCheckpoints(modelId), request);
      return await store().deleteCheckpoints(modelId, steps, signal);
    },
  };
}
