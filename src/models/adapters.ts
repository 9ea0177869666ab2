/** Adapter files -> adapters loaded beside one model: each once, alone or in mixes, until its last lease ends. */
import { LeaseScope, lease } from '../common/index.ts';
import type { Engine } from '../engine/index.ts';
import type { AdapterFile, AdapterFiles } from './adapter-files.ts';

/** An adapter of a mix, and the factor that its output is multiplied by. */
export type AdapterPart = { readonly file: AdapterFile; readonly scale: number };

/** An adapter or a mix that stays loaded until this is disposed of. */
export type AdapterLease = Disposable & {
  /** Number of the adapter in the engine. */
  readonly number: number;
  /** Identifies the content; no other adapter or mix ever has the same identity. */
  readonly identity: string;
};

export type AdapterContext = {
  readonly engine: Pick<Engine, 'loadAdapter' | 'mixAdapters' | 'freeAdapter'>;
  readonly files: Pick<AdapterFiles, 'sizeOf' | 'open'>;
  /** Reserves memory for an adapter until the result is disposed of. */
  readonly reserve: (bytes: number, file: AdapterFile) => Promise<Disposable>;
};

type Loaded = { readonly number: number; readonly holds: Disposable };
type Entry = { readonly loaded: Promise<Loaded>; userCount: number };

export class Adapters {
  readonly #context: AdapterContext;
  readonly #entries = new Map<string, Entry>(); // by identity, mixes too
  readonly #kept = new Map<string, AdapterLease>(); // by keeper

  constructor(context: AdapterContext) {
    this.#context = context;
  }

  /** Loads an adapter, or shares one that is loaded. Fails with `MODEL_INVALID` if it does not belong to this model. */
  use(file: AdapterFile): Promise<AdapterLease> {
    return this.#share(file.identity, () => this.#load(file));
  }

  /** Combines several adapters into one. Returns null if no part has an effect. The scales of an adapter that is given twice are added. */
  async mix(parts: readonly AdapterPart[]): Promise<AdapterLease | null> {
    const merged = mergeParts(parts);
    const [first] = merged;
    if (!first) return null;
    if (merged.length === 1 && first.scale === 1) return await this.use(first.file);
    const identity = merged.map(({ file, scale }) => `${file.identity}*${scale}`).join('+');
    return await this.#share(identity, () => this.#loadMix(merged));
  }

  /** Keeps an adapter loaded for `keeper`, in place of the keeper's previous one, if `isWanted` still returns true once it is loaded. */
  async keep(keeper: string, file: AdapterFile, isWanted = (): boolean => true): Promise<void> {
    if (this.#kept.get(keeper)?.identity === file.identity) return;
    const kept = await this.use(file);
    if (!isWanted()) return kept[Symbol.dispose]();
    this.drop(keeper);
    this.#kept.set(keeper, kept);
  }

  /** Ends the lease that {@link keep} took. */
  drop(keeper: string): void {
    this.#kept.get(keeper)?.[Symbol.dispose]();
    this.#kept.delete(keeper);
  }

  async #load(file: AdapterFile): Promise<Loaded> {
    const { engine, files, reserve } = this.#context;
    using scope = new LeaseScope();
    scope.add(await reserve(await files.sizeOf(file), file));
    await using open = await files.open(file);
    const number = await engine.loadAdapter(open.file);
    return { number, holds: scope.handOver({}) };
  }

  async #loadMix(parts: readonly AdapterPart[]): Promise<Loaded> {
    using scope = new LeaseScope();
    const numbers: number[] = [];
    for (const { file } of parts) numbers.push(scope.add(await this.use(file)).number);
    const scales = parts.map(({ scale }) => scale);
    const number = await this.#context.engine.mixAdapters(numbers, scales);
    return { number, holds: scope.handOver({}) };
  }

  async #share(identity: string, load: () => Promise<Loaded>): Promise<AdapterLease> {
    let entry = this.#entries.get(identity);
    if (!entry) {
      entry = { loaded: load(), userCount: 0 };
      this.#entries.set(identity, entry);
    }
    const used = entry;
    used.userCount += 1;
    using scope = new LeaseScope();
    scope.add(lease(() => this.#endUse(identity, used)));
    const { number } = await used.loaded;
    return scope.handOver({ number, identity });
  }

  #endUse(identity: string, entry: Entry): void {
    entry.userCount -= 1;
    if (entry.userCount > 0) return;
    if (this.#entries.get(identity) === entry) this.#entries.delete(identity);
    const free = async ({ number, holds }: Loaded): Promise<void> => {
      await this.#context.engine.freeAdapter(number).finally(() => holds[Symbol.dispose]());
    };
    // A failed load has nothing to free, and an engine that fails to free has ended.
    entry.loaded.then(free).catch(() => {});
  }
}

/** Returns each adapter once, without those of scale 0, sorted so that the order of the given parts does not matter. */
function mergeParts(parts: readonly AdapterPart[]): AdapterPart[] {
  const byIdentity = new Map<string, AdapterPart>();
  for (const { file, scale } of parts) {
    const before = byIdentity.get(file.identity)?.scale ?? 0;
    byIdentity.set(file.identity, { file, scale: before + scale });
  }
  return [...byIdentity.values()]
    .filter(({ scale }) => scale !== 0)
    .sort((a, b) => (a.file.identity < b.file.identity ? -1 : 1));
}
