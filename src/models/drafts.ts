/** A model in use -> the model that drafts for it, loaded beside it. */
import type { ModelOptions, ValidSpeculation } from '../protocol/index.ts';
import { DRAFT_FIELD, type DraftModel, eagleBeside, loadDraft, planDraft } from './draft-model.ts';
import type { InMemory, LoadInMemory, ModelUseOptions } from './model-use.ts';
import { keyOf } from './named-models.ts';
import type { Residency, Resident } from './residency.ts';
import type { RunningModel } from './running-model.ts';
import type { ServingOptions } from './serving-options.ts';

/** A model that drafts for another one. It is not unloaded before this is disposed of. */
export type DraftUse = Disposable & { readonly model: DraftModel };

type DraftsContext = {
  readonly serving: ServingOptions;
  readonly residency: Residency<InMemory>;
  readonly optionsOf: (reference: string) => ModelOptions;
  readonly use: (
    reference: string,
    field: string,
    residentFor: (file: string) => Resident<InMemory>,
    options: ModelUseOptions,
  ) => Promise<Disposable & { readonly value: InMemory }>;
  readonly residentOf: (key: string, name: string, file: string, load: LoadInMemory) => Resident<InMemory>;
  /** Returns a loaded model and its key. */
  readonly find: (model: RunningModel) => readonly [key: string, resident: Resident<InMemory>];
};

/** The draft models of one runtime. Each belongs to one model and is unloaded with it. */
export class Drafts {
  readonly #context: DraftsContext;
  readonly #besides = new WeakMap<RunningModel, string | null>(); // the EAGLE-3 files beside them

  constructor(context: DraftsContext) {
    this.#context = context;
  }

  /**
   * Returns the draft model for `target`, which is in use: the named one, or with `auto` an EAGLE-3 file beside it, if it fits into memory.
   * Returns null if there is no draft model. Fails with `INVALID_REQUEST` if their vocabularies differ.
   */
  async use(
    target: RunningModel,
    speculation: ValidSpeculation,
    use: ModelUseOptions = {},
  ): Promise<DraftUse | null> {
    if (speculation !== 'auto') {
      const reference = speculation === false ? null : speculation.model;
      return reference === null ? null : await this.#use(target, reference, use, false);
    }
    const known = this.#besides.get(target);
    const file = known === undefined ? eagleBeside(target) : known;
    this.#besides.set(target, file);
    if (file === null) return null;
    try {
      return await this.#use(target, file, use, true);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (use.signal?.aborted || code === 'CLOSED') throw error;
      this.#besides.set(target, null);
      this.#context.serving.log?.('warn', `${target.name}: ${file} beside it does not draft: ${message}`);
      return null;
    }
  }

  /** Loads a draft model. With `onlyIfFree` no other model is unloaded for it, else unused models are. */
  async #use(
    target: RunningModel,
    reference: string,
    use: ModelUseOptions,
    onlyIfFree: boolean,
  ): Promise<DraftUse> {
    const { serving, residency, ...context } = this.#context;
    const options = context.optionsOf(reference);
    const residentFor = (file: string): Resident<InMemory> => {
      const [baseKey, model] = context.find(target);
      const key = `${keyOf(file, options)} drafts for ${baseKey}`;
      return context.residentOf(key, options.path, file, async (enter, load) => {
        void model.gone.then(() => residency.leave(load.resident));
        const planned = await planDraft(file, target, options, serving, load.signal);
        await enter(planned.need, { model, onlyIfFree, field: DRAFT_FIELD });
        return await loadDraft(planned, target, serving, load);
      });
    };
    const found = await context.use(options.path, DRAFT_FIELD, residentFor, use);
    return { model: found.value as DraftModel, [Symbol.dispose]: () => found[Symbol.dispose]() };
  }
}
