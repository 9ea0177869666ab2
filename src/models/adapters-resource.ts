/** Named adapters -> loaded beside their model, until they are unloaded by name. */
import { atField, LeaseScope } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import { checkRequest, fault, PathTranslation, throwFaults } from '../protocol/index.ts';
import type { AdaptersResource } from '../protocol/service/index.ts';
import type { References } from './model-lease.ts';
import { keeperOf } from './named-adapters.ts';

/** Renames `model` to `base`, the caller's field, in errors about the base model. */
const PATHS = new PathTranslation({ model: 'base' });

/** The adapters of one runtime. */
export function adaptersResource(references: References): AdaptersResource {
  const { models, find, named } = references;
  return {
    async load(request, options = {}) {
      const given = checkRequest('AdapterLoadRequest', request, {});
      const { name, path, base = null, loadInPlace } = given;
      using scope = new LeaseScope();
      if (models.names.all.includes(name) || scope.add(await find(name)))
        throw errorAt('name', 'CONFLICT', `${JSON.stringify(name)} is the name of a model`);
      const { model } = scope.add(await PATHS.run(() => models.memory.use(base, options)));
      const adapter = { name, path, base };
      await named.add(adapter, loadInPlace ?? false, ({ file }) =>
        atField('path', () => model.adapters.keep(keeperOf(name), file)),
      );
      return adapter;
    },
    async unload(name) {
      if (typeof name !== 'string') throwFaults([fault(['name'], 'type', 'the name of an adapter', name)]);
      const isKnown = named.remove(name);
      for (const { adapters } of models.memory.loaded()) adapters.drop(keeperOf(name));
      return isKnown;
    },
    list: () => named.list(),
  };
}
