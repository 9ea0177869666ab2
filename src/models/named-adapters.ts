/** Adapters that were loaded by a name -> the adapter behind that name, until it is unloaded. */

import { atField, Queue } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import type { NamedAdapter } from '../protocol/service/index.ts';
import { type AdapterFile, identify } from './adapter-files.ts';

export type LoadedAdapter = NamedAdapter & { readonly file: AdapterFile };

export class NamedAdapters {
  readonly #byName = new Map<string, LoadedAdapter>();
  readonly #loading = new Queue();

  /** Returns null for other names. */
  find(name: string): LoadedAdapter | null {
    return this.#byName.get(name) ?? null;
  }

  list(): NamedAdapter[] {
    return [...this.#byName.values()].map(({ name, path, base }) => ({ name, path, base }));
  }

  /**
   * Registers an adapter under a name after `load` has loaded it. Calls for one name run one after the other. With `isReplacing` the name
   * may be taken. Fails with `CONFLICT` for a name that is taken, and with the errors of `load`.
   */
  async add(
    given: NamedAdapter,
    isReplacing: boolean,
    load: (adapter: LoadedAdapter) => Promise<void>,
  ): Promise<void> {
    const { name } = given;
    await this.#loading.run(name, async () => {
      if (!isReplacing && this.#byName.has(name))
        throw errorAt(
          'name',
          'CONFLICT',
          `the adapter ${JSON.stringify(name)} is loaded already; loadInPlace replaces it`,
        );
      const adapter = { ...given, file: await atField('path', () => identify(given.path)) };
      await load(adapter);
      this.#byName.set(name, adapter);
    });
  }

  /** Returns the keeper of an adapter: it stays loaded until its name is removed or given to another adapter. */
  keeping(adapter: LoadedAdapter): { file: AdapterFile; keeper: string; isWanted: () => boolean } {
    const { name, file } = adapter;
    return { file, keeper: keeperOf(name), isWanted: () => this.#byName.get(name) === adapter };
  }

  /** Removes a name. Returns false if there is no such adapter. */
  remove(name: string): boolean {
    return this.#byName.delete(name);
  }
}

/** Returns the key under which a named adapter is kept loaded. */
export function keeperOf(name: string): string {
  return `named ${name}`;
}
