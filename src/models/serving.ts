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
  /** Until then it is not deleted. Releasing twice is fine. */
  release(): void;
};

/** Finds what ids, names and `name@step` stand for; null for references that are none of these. */
export type FindRegistered = (reference: string) => Promise<Registered | null>;

/** What answers a request. */
export type Serving = {
  readonly model: ServedModel;
  readonly adapter: Pick<AdapterLease, 'number' | 'identity'> | null;
  /** To be called when the answer is complete, or there will be none. Releasing twice is fine. */
  release(): void;
};

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
  if (!registered) return { model: await models.get(reference, signal), adapter: null, release: () => {} };
  try {
    const { id, baseModel, adapter: file, isNewest } = registered;
    const model = await models.get(baseModel, signal);
    if (isNewest && file) await model.adapters.keep(id, file);
    else if (isNewest) model.adapters.drop(id);
    const adapter = file && (await model.adapters.use(file));
    const release = (): void => {
      adapter?.release();
      registered.release();
    };
    return { model, adapter, release };
  } catch (error) {
    registered.release();
    throw error;
  }
}
