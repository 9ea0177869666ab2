/** A request's model reference -> what answers it: a loaded model, with the adapter of a checkpoint where it names one. */
import type { AdapterFile, AdapterLease } from './adapters.ts';
import type { Models, ServedModel } from './models.ts';

/** What a reference to a registered model stands for. */
export type Registered = {
  readonly id: string;
  /** Reference of the model that it started from. */
  readonly baseModel: string;
  /** Of the checkpoint; null: the base model itself. */
  readonly adapter: AdapterFile | null;
  /** Whether this is what the model answers with when no step is named. */
  readonly isNewest: boolean;
};

/** Finds what ids, names and `name@step` stand for; null for references that are none of these. */
export type FindRegistered = (reference: string) => Promise<Registered | null>;

/** What answers a request; the adapter is released when it has. */
export type Serving = { readonly model: ServedModel; readonly adapter: AdapterLease | null };

/**
 * Loads what a reference stands for. A registered model's newest adapter stays loaded; the one before it goes when the
 * last request that uses it has ended.
 */
export async function serve(
  models: Models,
  find: FindRegistered,
  reference: string | null,
  signal: AbortSignal | undefined,
): Promise<Serving> {
  const registered = reference === null ? null : await find(reference);
  if (!registered) return { model: await models.get(reference, signal), adapter: null };
  const { id, baseModel, adapter, isNewest } = registered;
  const model = await models.get(baseModel, signal);
  if (isNewest && adapter) await model.adapters.keep(id, adapter);
  else if (isNewest) model.adapters.drop(id);
  return { model, adapter: adapter && (await model.adapters.use(adapter)) };
}
