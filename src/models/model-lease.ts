/** A request's model reference -> a lease on a loaded model and the adapter of the checkpoint that it names. */
import { LeaseScope } from '../common/index.ts';
import type { AdapterFile, AdapterLease } from './adapters.ts';
import type { Models, ModelUseOptions } from './models.ts';
import type { RunningModel } from './running-model.ts';

/** A registered model or checkpoint. It is not deleted before this is disposed of. */
export type Registered = Disposable & {
  readonly id: string;
  /** Reference of the model that it started from. */
  readonly baseModel: string;
  /** Of the checkpoint; null: the base model itself. */
  readonly adapter: AdapterFile | null;
  /** Whether this is what the model answers with when no step is named. */
  readonly isNewest: boolean;
};

/** Finds the model of an id, a name or `name@step`; null for other references. */
export type FindRegistered = (reference: string) => Promise<Registered | null>;

/** What answers a request. Dispose of it when the answer is complete. */
export type ModelLease = Disposable & {
  readonly model: RunningModel;
  readonly adapter: Pick<AdapterLease, 'number' | 'identity'> | null;
};

/**
 * Loads the model of a reference. A registered model's newest adapter stays loaded; the one before it is freed when the
 * last request that uses it has ended.
 */
export async function leaseModel(
  models: Models,
  find: FindRegistered,
  reference: string | null,
  options: ModelUseOptions,
): Promise<ModelLease> {
  using scope = new LeaseScope();
  const registered = reference === null ? null : scope.add(await find(reference));
  const baseModel = registered ? registered.baseModel : reference;
  const { model } = scope.add(await models.use(baseModel, options));
  if (!registered) return scope.handOver({ model, adapter: null });
  const { id, adapter: file, isNewest } = registered;
  if (isNewest && file) await model.adapters.keep(id, file);
  else if (isNewest) model.adapters.drop(id);
  return scope.handOver({ model, adapter: file && scope.add(await model.adapters.use(file)) });
}
