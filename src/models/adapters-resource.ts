/** Adapters with names of their own -> loaded beside their model, until they are given back. */
import { atField, LeaseScope } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import {
  type AdapterLoadRequest,
  checkCallOptions,
  checkRequest,
  fault,
  PathTranslation,
  throwFaults,
} from '../protocol/index.ts';
import type { References } from './model-lease.ts';
import { keeperOf, type NamedAdapter } from './named-adapters.ts';

/** Named adapters. */
export interface AdaptersResource {
  /**
   * Loads an adapter and gives it a name, which requests use as their `model`, or as the `model` of one of their `adapters`. It stays
   * loaded with its model.
   * @throws OnpolicyError `CONFLICT` if the name is taken, `MODEL_NOT_FOUND` if the file or the base model does not exist, `MODEL_INVALID`
   *   for an adapter of another model, `UNSUPPORTED` if it is not a plain LoRA
   */
  load(request: AdapterLoadRequest, options?: { readonly signal?: AbortSignal }): Promise<NamedAdapter>;
  /** Removes a name. The adapter is freed after the last request that uses it. Resolves with false for an unknown name. */
  unload(name: string): Promise<boolean>;
  /** The adapters that are loaded now. */
  list(): NamedAdapter[];
}

/** What errors about the base model call it. */
const PATHS = new PathTranslation({ model: 'base' });

/** The adapters of one runtime. `requireOpen` throws when it is closed. */
export function adaptersResource(references: References, requireOpen: () => void): AdaptersResource {
  const { models, find, named } = references;
  return {
    async load(request, options = {}) {
      requireOpen();
      checkCallOptions(options);
      const given = checkRequest('AdapterLoadRequest', request, {});
      const { name, path, base = null, loadInPlace } = given;
      using scope = new LeaseScope();
      if (models.names().includes(name) || scope.add(await find(name)))
        throw errorAt('name', 'CONFLICT', `${JSON.stringify(name)} is the name of a model`);
      const { model } = scope.add(await PATHS.run(() => models.use(base, options)));
      const adapter = { name, path, base };
      await named.add(adapter, loadInPlace ?? false, ({ file }) =>
        atField('path', () => model.adapters.keep(keeperOf(name), file)),
      );
      return adapter;
    },
    async unload(name) {
      requireOpen();
      if (typeof name !== 'string') throwFaults([fault(['name'], 'type', 'the name of an adapter', name)]);
      const isKnown = named.remove(name);
      for (const { adapters } of models.loaded()) adapters.drop(keeperOf(name));
      return isKnown;
    },
    list: () => named.list(),
  };
}
