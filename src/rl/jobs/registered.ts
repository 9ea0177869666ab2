/** Ids, names and `name@step` of registered models -> their base model and adapter, leased. */
import path from 'node:path';
import type { FindRegistered } from '../../models/index.ts';
import { CHECKPOINT_FILES } from '../index.ts';
import type { Store } from '../store/index.ts';

/** Looks references up in a store. `store` throws if the runtime is closed. */
export function findRegistered(store: () => Store): FindRegistered {
  return async (reference) => {
    const [name, stepText] = partsOf(reference);
    const model = await store().findModel(name);
    if (!model) return null;
    const step = stepText === undefined ? undefined : Number(stepText);
    const used = await store().useCheckpoint(model.id, step);
    const { id, folder } = used;
    return {
      id: model.id,
      baseModel: model.base_model,
      adapter: id && folder ? { identity: id, path: path.join(folder, CHECKPOINT_FILES.gguf) } : null,
      isNewest: step === undefined,
      [Symbol.dispose]: () => used[Symbol.dispose](),
    };
  };
}

/** Returns true if a reference names a registered model. Its step need not exist. */
export async function isRegistered(store: Store, reference: string): Promise<boolean> {
  return (await store.findModel(partsOf(reference)[0])) !== null;
}

/** Splits a reference into id or name, and step. */
function partsOf(reference: string): [name: string, step?: string] {
  const [, name, step] = /^(.+)@(\d+)$/.exec(reference) ?? [];
  return name === undefined ? [reference] : [name, step!];
}
