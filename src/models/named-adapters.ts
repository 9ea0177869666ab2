/** Adapters that were loaded by a name -> what answers to that name, until it is given back. */
import { atField, Queue } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import { type AdapterFile, identify } from './adapter-files.ts';

/** A named adapter. */
export type NamedAdapter = {
  readonly name: string;
  /** Its GGUF file or PEFT folder. */
  readonly path: string;
  /** Reference of its base model; null: the default model. */
  readonly base: string | null;
};

export type LoadedAdapter = NamedAdapter & { readonly file: AdapterFile };

export class NamedAdapters {
  readonly #byName = new Map<string, LoadedAdapter>();
  readonly #loading = new Queue();

  /** Null for other names. */
  find(name: string): LoadedAdapter | null {
    return this.#byName.get(name) ?? null;
  }

  list(): NamedAdapter[] {
    return [...this.#byName.values()].map(({ name, path, base }) => ({ name, path, base }));
  }

  /**
   * Gives an adapter a name, after `load` has loaded it, one at a time of a name. `isReplacing`: also one that is taken.
   * Fails with `CONFLICT` for a name that is taken, and as `load` does.
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

  /** What keeps an adapter loaded: its name, until another one has it or none. */
  keeping(adapter: LoadedAdapter): { file: AdapterFile; keeper: string; isWanted: () => boolean } {
    const { name, file } = adapter;
    return { file, keeper: keeperOf(name), isWanted: () => this.#byName.get(name) === adapter };
  }

  /** Takes a name back. False: there is no such adapter. */
  remove(name: string): boolean {
    return this.#byName.delete(name);
  }
}

/** What the memory of a model keeps an adapter loaded for. */
export function keeperOf(name: string): string {
  return `named ${name}`;
}
