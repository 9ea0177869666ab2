/** A smaller model beside one that answers -> what drafts for it: the same vocabulary, a cache of its own. */
import { type GgufModel, isOnnxModel } from '../backends/index.ts';
import { atField } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import { type Handle, loadAddon } from '../native/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { contextLimits, type LoadPlan, loadWeights, planLoad } from './load-model.ts';
import type { RunningModel } from './running-model.ts';
import type { ServingOptions } from './serving-options.ts';

/** The field that names it, in errors. */
export const DRAFT_FIELD = 'speculation.model';

/** A model that drafts for one other. */
export type DraftModel = {
  /** For drafters. */
  readonly handle: Handle;
  readonly loaded: GgufModel;
};

/** Reads headers only. Its context holds what that of the other model may hold, unless its own options say less. */
export async function planDraft(
  file: string,
  target: RunningModel,
  options: ModelOptions,
  serving: ServingOptions,
  signal: AbortSignal,
): Promise<LoadPlan> {
  if (isOnnxModel(file)) throw unsupported(`expected a GGUF file, got ${file}, which is an ONNX model`);
  const { contextSize, threads, engine } = target;
  const asTarget = { contextSize, threads, maxSequences: engine.maxRunning };
  const drafting: ModelOptions = { ...asTarget, ...options, slidingWindow: 'full', mmproj: null };
  const plan = await atField(DRAFT_FIELD, () => planLoad(file, drafting, withoutPromise(serving), signal));
  if (plan.shape!.isRecurrent)
    throw unsupported(`${file} has recurrent state, from which rejected draft tokens cannot be removed`);
  return plan;
}

/** What drafts are changes no answer. */
const withoutPromise = (serving: ServingOptions): ServingOptions => ({ ...serving, deterministic: false });

/** Loads it. Fails with `INVALID_REQUEST` when its tokens are others. */
export async function loadDraft(
  plan: LoadPlan,
  { tokenizer }: RunningModel,
  serving: ServingOptions,
  load: { signal: AbortSignal; onProgress: (fraction: number) => void },
): Promise<DraftModel> {
  const loaded = (await loadWeights(plan, serving, load)) as GgufModel;
  try {
    requireSameTokens(tokenizer, loaded.tokenizer, plan.file);
    const limits = contextLimits(loaded, plan.options, withoutPromise(serving));
    const longest = Math.min(plan.options.contextSize!, loaded.contextLength);
    const handle = await loaded.createDraftModel(
      { ...limits, maxOutputs: limits.slotCount },
      { sampledTokens: tokenizer.vocabSize, longest },
    );
    return { handle, loaded };
  } catch (error) {
    loaded.close();
    throw error;
  }
}

/** Frees it with its context. */
export async function closeDraft({ handle, loaded }: DraftModel): Promise<void> {
  await loadAddon().closeDraftModel(handle);
  loaded.close();
}

/** One of them may have ids behind those of the other, as padded vocabularies have. */
function requireSameTokens(target: Tokenizer, draft: Tokenizer, file: string): void {
  const shared = Math.min(target.vocabSize, draft.vocabSize);
  for (let id = 0; id < shared; id++) {
    if (Buffer.compare(target.bytesOf(id), draft.bytesOf(id)) === 0) continue;
    const show = (tokenizer: Tokenizer): string =>
      JSON.stringify(Buffer.from(tokenizer.bytesOf(id)).toString());
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `${DRAFT_FIELD}: expected a model with the vocabulary of the large model, got ${file}: ` +
        `its token ${id} is ${show(draft)}, not ${show(target)}`,
      { param: DRAFT_FIELD },
    );
  }
}

function unsupported(reason: string): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', `${DRAFT_FIELD}: ${reason}`, { param: DRAFT_FIELD });
}
