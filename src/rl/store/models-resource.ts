/** A store -> `runtime.models`. */
import type { ExportModel, NamedModels } from '../../models/index.ts';
import {
  checkListQuery,
  checkModelCreateRequest,
  fault,
  throwFaults,
  withSplit,
} from '../../protocol/index.ts';
import type { CallOptions, ModelsResource } from '../../protocol/service/index.ts';
import { isId } from './ids.ts';
import type { Store } from './store.ts';

/** Models of this process's store. */
export interface LocalModelsResource extends ModelsResource {
  readonly export: ExportModel;
}

/** Functions of the models resource that the store does not provide. */
export type ModelHooks = {
  readonly export: ExportModel;
  readonly onDeleted: (id: string) => void;
};

/** Models of a store. `store` throws if the runtime is closed. `bases` are the allowed base models. */
export function modelsResource(
  store: () => Store,
  bases: Pick<NamedModels, 'all' | 'has' | 'missing'>,
  hooks: ModelHooks,
): LocalModelsResource {
  return {
    export: hooks.export,
    create: async (request) => {
      const valid = checkModelCreateRequest(request);
      // `request.model` of a completion means an id, a name, or name@step.
      if (valid.name !== null && (isId(valid.name) || /@\d+$/.test(valid.name)))
        throwFaults([
          fault(['name'], 'value', 'a name that is not a UUID and does not end in @ and digits', valid.name),
        ]);
      if (valid.name !== null && bases.all.includes(valid.name))
        throwFaults([fault(['name'], 'value', 'a name that no other model has', valid.name)]);
      if (!bases.has(valid.base_model)) throw bases.missing(valid.base_model, 'base_model');
      return await store().createModel(valid);
    },
    retrieve: async (id) => await store().getModel(id),
    list: async (query) => await store().listModels(checkListQuery(query)),
    log: async (id, request) => await store().runs.log(id, withSplit(request)),
    delete: async (id, { signal }: CallOptions = {}) => {
      const deletion = await store().deleteModel(id, signal);
      hooks.onDeleted(deletion.model_id);
      return deletion;
    },
  };
}
