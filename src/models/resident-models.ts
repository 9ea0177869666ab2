/** A path or URI of a model -> the model in memory. Each file is loaded once for all its references and options. */
import { Shared } from '../common/index.ts';
import { freeGpuBytes, usesGpu } from '../engine/native/index.ts';
import { OnpolicyError } from '../errors.ts';
import { withDefaults } from '../protocol/index.ts';
import { chooseFitting } from './choose-fitting.ts';
import { resolveFile } from './model-files.ts';
import type { FormatOptions } from './model-format.ts';
import type { InMemory, LoadInMemory, ModelUseOptions } from './model-use.ts';
import type { NamedModels } from './named-models.ts';
import { Residency, type Resident } from './residency.ts';

/** The files and the models in memory of one runtime, of every kind: those that answer, make vectors or draft. */
export class ResidentModels {
  readonly #options: FormatOptions;
  readonly #names: NamedModels;
  readonly #files = new Map<string, Shared<string>>(); // by path or URI
  readonly #byKey = new Map<string, Resident<InMemory>>(); // by path and options
  readonly residency: Residency<InMemory>;
  #closed = false;

  constructor(names: NamedModels, options: FormatOptions, unload: (model: InMemory) => Promise<void>) {
    this.#names = names;
    this.#options = options;
    this.residency = new Residency({
      ...withDefaults('MemoryOptions', options.memory),
      freeBytes: () => ({
        host: Math.max(0, process.availableMemory() - this.#unwrittenBytes()),
        device: usesGpu(options.gpu) ? freeGpuBytes() : 0,
      }),
      unload,
    });
  }

  /** Returns the bytes that loaded models will still take: their caches take memory only when they are written. */
  #unwrittenBytes(): number {
    const loaded = [...this.#byKey.values()].filter(({ value }) => value !== null);
    const host = loaded.reduce((sum, { need }) => sum + (need?.host ?? 0), 0);
    return Math.max(0, host - process.memoryUsage.rss());
  }

  /** Returns the model in memory for a path or URI. Loads it again if it is being unloaded or its engine has failed. */
  async use(
    reference: string,
    field: string,
    residentFor: (file: string) => Resident<InMemory>,
    { signal, keepMs = null }: ModelUseOptions,
  ): Promise<Disposable & { readonly value: InMemory }> {
    for (;;) {
      const resident = residentFor(await this.fileOf(reference, signal, field));
      const { value } = resident;
      if (value && 'engine' in value && value.engine.hasFailed) void this.residency.leave(resident);
      if (!resident.isLeaving) return await this.residency.use(resident, signal, keepMs);
      await new Shared(() => resident.gone).wait(signal);
    }
  }

  /** Returns the model under a key that is in memory or is being loaded. Begins to load it if there is none. */
  residentOf(key: string, name: string, file: string, load: LoadInMemory): Resident<InMemory> {
    const known = this.#byKey.get(key);
    if (known && !known.loading.isStopped) return known;
    const added = this.residency.add(name, file, (resident, enter, signal) => {
      const onProgress = (fraction: number): void => {
        resident.progress = fraction;
        this.#options.onProgress?.(name, fraction, 'load');
      };
      return load(enter, { resident, signal, onProgress });
    });
    this.#byKey.set(key, added);
    void added.gone.then(() => {
      if (this.#byKey.get(key) === added) this.#byKey.delete(key);
    });
    return added;
  }

  /** Returns the local file of a path or URI. Concurrent callers share one download. */
  async fileOf(reference: string, signal: AbortSignal | undefined, field = 'model'): Promise<string> {
    let finding = this.#files.get(reference);
    if (!finding || finding.isStopped) {
      finding = new Shared((stop) =>
        resolveFile(reference, {
          ...this.#options,
          signal: stop,
          field,
          names: this.#names.all,
          choose: chooseFitting(this.#options),
        }),
      );
      this.#files.set(reference, finding);
      const failed = finding;
      failed.result.catch(() => {
        if (this.#files.get(reference) === failed) this.#files.delete(reference); // it may be tried again
      });
    }
    const file = await finding.wait(signal);
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the runtime is closed');
    return file;
  }

  /** Returns the local file of a path or URI that was asked for before, else null. */
  async knownFile(reference: string): Promise<string | null> {
    return (await this.#files.get(reference)?.result) ?? null;
  }

  /** Returns the model under a key, if it is in memory or is being loaded. */
  get(key: string): Resident<InMemory> | undefined {
    return this.#byKey.get(key);
  }

  /** Returns a loaded model and its key. */
  find(model: InMemory): readonly [key: string, resident: Resident<InMemory>] {
    return [...this.#byKey].find(([, { value }]) => value === model)!;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.residency.close();
    this.#byKey.clear();
    this.#files.clear();
  }
}
