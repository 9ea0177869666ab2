/** Adapter files -> adapters loaded beside one model: each once, for as long as somebody uses or keeps it. */
import type { Engine } from '../engine/index.ts';

/** An adapter's file, and a name that no other content ever has. */
export type AdapterFile = { readonly identity: string; readonly path: string };

/** An adapter that stays loaded until it is released. Releasing twice is fine. */
export type AdapterLease = {
  /** By which the engine knows it. */
  readonly number: number;
  readonly identity: string;
  release(): void;
};

type Entry = { readonly number: Promise<number>; holders: number };

/** The adapters of one engine. */
export class Adapters {
  readonly #engine: Pick<Engine, 'loadAdapter' | 'freeAdapter'>;
  readonly #entries = new Map<string, Entry>(); // by identity
  readonly #kept = new Map<string, AdapterLease>(); // by who keeps it

  constructor(engine: Pick<Engine, 'loadAdapter' | 'freeAdapter'>) {
    this.#engine = engine;
  }

  /** Loads an adapter, or shares one that is loaded. Fails with `MODEL_INVALID` when it is none of this model. */
  async use({ identity, path }: AdapterFile): Promise<AdapterLease> {
    let entry = this.#entries.get(identity);
    if (!entry) {
      entry = { number: this.#engine.loadAdapter(path), holders: 0 };
      this.#entries.set(identity, entry);
    }
    const held = entry;
    held.holders += 1;
    try {
      const number = await held.number;
      let isHeld = true;
      const release = (): void => {
        if (isHeld) this.#letGo(identity, held);
        isHeld = false;
      };
      return { number, identity, release };
    } catch (error) {
      this.#letGo(identity, held);
      throw error;
    }
  }

  /** Keeps an adapter loaded for `keeper`, in place of the one that was kept for it before. */
  async keep(keeper: string, file: AdapterFile): Promise<void> {
    if (this.#kept.get(keeper)?.identity === file.identity) return;
    const lease = await this.use(file);
    this.drop(keeper);
    this.#kept.set(keeper, lease);
  }

  /** Keeps nothing for `keeper` any more. */
  drop(keeper: string): void {
    this.#kept.get(keeper)?.release();
    this.#kept.delete(keeper);
  }

  #letGo(identity: string, entry: Entry): void {
    entry.holders -= 1;
    if (entry.holders > 0) return;
    if (this.#entries.get(identity) === entry) this.#entries.delete(identity);
    // A failed load has nothing to free, and an engine that fails to free has ended.
    entry.number.then((number) => this.#engine.freeAdapter(number)).catch(() => {});
  }
}
