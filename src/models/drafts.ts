/** A model in use -> the model that drafts for it, loaded beside it. */
import { errorAt } from '../errors.ts';
import type { ValidSpeculation } from '../protocol/index.ts';
import { DRAFT_FIELD, type DraftModel, drafterBeside, loadDraft, planDraft } from './draft-model.ts';
import type { GgufPlan } from './gguf-format.ts';
import type { FormatOptions } from './model-format.ts';
import type { InMemory, ModelUseOptions } from './model-use.ts';
import { loadKey, type NamedModels } from './named-models.ts';
import type { Resident } from './residency.ts';
import type { ResidentModels } from './resident-models.ts';
import type { RunningModel } from './running-model.ts';

/** A model that drafts for another one. It is not unloaded before this is disposed of. */
export type DraftUse = Disposable & { readonly model: DraftModel };

/** The draft models of one runtime. Each belongs to one model and is unloaded with it. */
export class Drafts {
  readonly #names: NamedModels;
  readonly #residents: ResidentModels;
  readonly #serving: FormatOptions;
  readonly #besides = new WeakMap<RunningModel, string | null>(); // the files beside them that draft

  constructor(names: NamedModels, residents: ResidentModels, serving: FormatOptions) {
    this.#names = names;
    this.#residents = residents;
    this.#serving = serving;
  }

  /**
   * Returns the draft model for `target`, which is in use: the named one, or with `auto` the file beside it that drafts, if it fits into memory.
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
    const file = known === undefined ? drafterBeside(target) : known;
    this.#besides.set(target, file);
    if (file === null) return null;
    try {
      return await this.#use(target, file, use, true);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (use.signal?.aborted || code === 'CLOSED') throw error;
      this.#besides.set(target, null);
      this.#serving.log?.('warn', `${target.name}: ${file} beside it does not draft: ${message}`);
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
    const options = this.#names.find(reference);
    const residentFor = (file: string): Resident<InMemory> => {
      const [baseKey, model] = this.#residents.find(target);
      const key = `${loadKey(file, options)} drafts for ${baseKey}`;
      return this.#residents.residentOf(key, options.path, file, async (enter, load) => {
        void model.gone.then(() => this.#residents.residency.leave(load.resident));
        const planned = await planDraft(file, target, options, this.#serving);
        if (onlyIfFree) requireHead(planned);
        await enter(planned.need, { model, onlyIfFree, field: DRAFT_FIELD });
        return await loadDraft(planned, target, this.#serving, load);
      });
    };
    const found = await this.#residents.use(options.path, DRAFT_FIELD, residentFor, use);
    return { model: found.value as DraftModel, [Symbol.dispose]: () => found[Symbol.dispose]() };
  }
}

/** A model that drafts by itself is used only if it is named. */
function requireHead({ shape, file }: GgufPlan): void {
  if (shape.eagle === null && shape.assistant === null)
    throw errorAt(DRAFT_FIELD, 'UNSUPPORTED', `expected an EAGLE-3 file or an assistant, got ${file}`);
}
