/** What `runtime.checkpoints` can be asked, over the store. */
import { validateCheckpointDeleteRequest, validateListQuery } from '../protocol/index.ts';
import type { CallOptions, CheckpointsResource } from '../service.ts';
import type { Store } from './store.ts';

/** Checkpoints of a store's models. `store` throws when the runtime is closed. */
export function checkpointsResource(store: () => Store): CheckpointsResource {
  return {
    list: async (modelId, query) => await store().listCheckpoints(modelId, validateListQuery(query)),
    delete: async (modelId, request, { signal }: CallOptions = {}) => {
      const { steps } = validateCheckpointDeleteRequest(request);
      return await store().deleteCheckpoints(modelId, steps, signal);
    },
  };
}
