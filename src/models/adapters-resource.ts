/** Adapters with names of their own -> loaded beside their model, until they are given back. */
import { atField, LeaseScope } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
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

/** Adapters that are loaded by a name. */
export interface AdaptersResource {
  /**
   * Loads an adapter and gives it a name, which requests use as their `model`, or as the `model` of one of their `adapters`. It
   * stays loaded with its model.
   * @throws OnpolicyError `CONFLICT` when the name is taken, `MODEL_NOT_FOUND` when there is no such file or base, `MODEL_INVALID`
   * for an adapter of another model, `UNSUPPORTED` for one that is no plain LoRA
   */
  load(request: AdapterLoadRequest, options?: { readonly signal?: AbortSignal }): Promise<NamedAdapter>;
  /** Takes a name back. The adapter is freed when the last request that uses it has ended. Resolves with false for other names. */
  unload(name: string): Promise<boolean>;
  /** What is loaded by a name now. */
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
        throw new OnpolicyError('CONFLICT', `name: ${JSON.stringify(name)} is the name of a model`, {
          param: 'name',
        });
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
