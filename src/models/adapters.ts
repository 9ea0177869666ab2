/** Adapter files -> adapters loaded beside one model: each once, until its last lease ends. */
import { LeaseScope, lease } from '../common/index.ts';
import type { Engine } from '../engine/index.ts';

/** An adapter's file, and a name that no other content ever has. */
export type AdapterFile = { readonly identity: string; readonly path: string };

/** An adapter that stays loaded until this is disposed of. */
export type AdapterLease = Disposable & {
  /** Its number in the engine. */
  readonly number: number;
  readonly identity: string;
};

type Entry = { readonly number: Promise<number>; userCount: number };

/** The adapters of one engine. */
export class Adapters {
  readonly #engine: Pick<Engine, 'loadAdapter' | 'freeAdapter'>;
  readonly #entries = new Map<string, Entry>(); // by identity
  readonly #kept = new Map<string, AdapterLease>(); // by keeper

  constructor(engine: Pick<Engine, 'loadAdapter' | 'freeAdapter'>) {
    this.#engine = engine;
  }

  /** Loads an adapter, or shares one that is loaded. Fails with `MODEL_INVALID` when it is none of this model. */
  async use({ identity, path }: AdapterFile): Promise<AdapterLease> {
    let entry = this.#entries.get(identity);
    if (!entry) {
      entry = { number: this.#engine.loadAdapter(path), userCount: 0 };
      this.#entries.set(identity, entry);
    }
    const used = entry;
    used.userCount += 1;
    using scope = new LeaseScope();
    scope.add(lease(() => this.#endUse(identity, used)));
    return scope.handOver({ number: await used.number, identity });
  }

  /** Keeps an adapter loaded for `keeper`, instead of the one before. */
  async keep(keeper: string, file: AdapterFile): Promise<void> {
    if (this.#kept.get(keeper)?.identity === file.identity) return;
    const kept = await this.use(file);
    this.drop(keeper);
    this.#kept.set(keeper, kept);
  }

  /** Ends what {@link keep} began. */
  drop(keeper: string): void {
    this.#kept.get(keeper)?.[Symbol.dispose]();
    this.#kept.delete(keeper);
  }

  #endUse(identity: string, entry: Entry): void {
    entry.userCount -= 1;
    if (entry.userCount > 0) return;
    if (this.#entries.get(identity) === entry) this.#entries.delete(identity);
    // A failed load has nothing to free, and an engine that fails to free has ended.
    entry.number.then((number) => this.#engine.freeAdapter(number)).catch(() => {});
  }
}
