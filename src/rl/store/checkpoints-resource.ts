/** A store -> `runtime.checkpoints`. */
import path from 'node:path';
import { errorAt } from '../../errors.ts';
import {
  type Checkpoint,
  type CheckpointDeletion,
  checkArguments,
  checkListQuery,
  checkRequest,
  type PruneRequest,
  withDefaults,
} from '../../protocol/index.ts';
import type { CallOptions, CheckpointsResource } from '../../protocol/service/index.ts';
import { stepFolder } from '../index.ts';
import type { Store } from './store.ts';

/** Checkpoints of this process's store. */
export interface LocalCheckpointsResource extends CheckpointsResource {
  /**
   * Deletes all checkpoints except the best by a metric, the newest, and those without the metric. Logged metrics count.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, or a metric that no checkpoint has
   */
  prune(modelId: string, request: PruneRequest, options?: CallOptions): Promise<CheckpointDeletion>;
  /**
   * The folder of a checkpoint, for programs that load its adapter: `adapter.gguf`, and files of PEFT.
   * @throws OnpolicyError `MODEL_NOT_FOUND`; `NOT_FOUND` for a step without a checkpoint
   */
  folder(modelId: string, step: number): Promise<string>;
}

/** Checkpoints of a store's models. `store` throws if the runtime is closed. */
export function checkpointsResource(store: () => Store): LocalCheckpointsResource {
  return {
    list: async (modelId, query) => await store().listCheckpoints(modelId, checkListQuery(query)),
    delete: async (modelId, request, { signal }: CallOptions = {}) => {
      const { steps } = checkRequest('CheckpointDeleteRequest', request, {});
      return await store().deleteCheckpoints(modelId, steps, signal);
    },
    prune: async (modelId, request, { signal }: CallOptions = {}) => {
      const steps = stepsToPrune(await store().measuredCheckpoints(modelId), request);
      return await store().deleteCheckpoints(modelId, steps, signal);
    },
    folder: async (modelId, step) => {
      const { id } = await store().getModel(modelId);
      if (!(await store().checkpointSteps(id)).includes(step))
        throw errorAt('step', 'NOT_FOUND', `the model ${id} has no checkpoint of step ${step}`);
      return stepFolder(path.resolve(store().checkpointsFolder(id)), step);
    },
  };
}

/**
 * Returns the steps with the metric, except the best `keep` and the newest checkpoint, which is in use. Of equal ones the newer is better.
 * A checkpoint without the metric stays.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, and if no checkpoint has the metric
 */
function stepsToPrune(checkpoints: readonly Checkpoint[], request: PruneRequest): number[] {
  const { keep, metric, goal } = withDefaults('PruneRequest', checkArguments('PruneRequest', request));
  const measured = checkpoints.flatMap(({ step, metrics }) => {
    const value = Object.hasOwn(metrics, metric) ? metrics[metric] : undefined;
    return typeof value === 'number' ? [{ step, worth: goal === 'max' ? value : -value }] : [];
  });
  if (measured.length === 0 && checkpoints.length > 0) throw unknownMetric(checkpoints, metric);
  const newest = Math.max(...checkpoints.map(({ step }) => step));
  return measured
    .toSorted((a, b) => b.worth - a.worth || b.step - a.step)
    .slice(keep)
    .map(({ step }) => step)
    .filter((step) => step !== newest);
}

function unknownMetric(checkpoints: readonly Checkpoint[], metric: string) {
  const known = [...new Set(checkpoints.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  const expected = known.length === 0 ? 'nothing: no checkpoint has a metric' : `one of ${known.join(', ')}`;
  return errorAt('metric', 'INVALID_REQUEST', `expected ${expected}, got ${JSON.stringify(metric)}`);
}
