/** A smaller model beside one that answers -> a draft model with the same vocabulary and a separate cache. */
import fs from 'node:fs';
import path from 'node:path';
import { atField } from '../common/index.ts';
import { ASSISTED } from '../engine/gguf/index.ts';
import { type Handle, loadAddon } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt, type OnpolicyError } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { contextLimits } from './context-limits.ts';
import { type AssistantFacts, type GgufModel, isGguf, type ModelShape } from './formats/index.ts';
import { type GgufPlan, loadWeights, planGguf } from './gguf-format.ts';
import { type FormatOptions, formatOf } from './model-format.ts';
import type { RunningModel } from './running-model.ts';
import type { ServingOptions } from './serving-options.ts';

/** Field that errors about the draft model name. */
export const DRAFT_FIELD = 'speculation.model';

/** A model that drafts for one other model. */
export type DraftModel = {
  /** Handle for drafters. Null if the draft model reads the other model's states, whose engine then drafts with it. */
  readonly handle: Handle | null;
  readonly loaded: GgufModel;
  readonly target: RunningModel;
};

/** Names of files that draft for a model beside them. */
const EAGLE_NAME = /eagle-?3.*\.gguf$/i;
const ASSISTANT_NAME = /(eagle-?3|assistant).*\.gguf$/i;

/**
 * Returns the file in a model's folder that drafts for it, recognized by its name: EAGLE-3, or an assistant of Gemma 4. Returns null if
 * there is no such file or several, or if the model drafts by itself.
 */
export function drafterBeside({ path: file, loaded, engine }: RunningModel): string | null {
  if (!isGguf(loaded) || engine.draftHead?.kind === 'own') return null;
  const folder = path.dirname(file);
  const isNamed = architectureOf(loaded) === ASSISTED ? ASSISTANT_NAME : EAGLE_NAME;
  const found = namesIn(folder).filter((name) => isNamed.test(name) && name !== path.basename(file));
  return found.length === 1 ? path.join(folder, found[0]!) : null;
}

const architectureOf = ({ metadata }: GgufModel): string | undefined => metadata['general.architecture'];

/** Returns the names in a folder. Returns an empty list if the folder is gone or cannot be read. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Plans the load of a draft model. Reads headers only. Its context is as large as that of the other model, unless its options set a lower
 * limit.
 */
export async function planDraft(
  file: string,
  target: RunningModel,
  options: ModelOptions,
  serving: FormatOptions,
): Promise<GgufPlan> {
  const { name } = formatOf(file, serving.formats);
  if (name !== 'gguf')
    throw unsupported(`expected a GGUF file, got ${file}, which is an ${name.toUpperCase()} model`);
  const { contextSize, threads, engine } = target;
  const asTarget = { contextSize, threads, maxSequences: engine.maxRunning };
  const drafting: ModelOptions = { ...asTarget, ...options, slidingWindow: 'full', mmproj: null };
  const plan = await atField(DRAFT_FIELD, () =>
    planGguf({ file, options: drafting, mmproj: null, serving: withoutPromise(serving) }, true),
  );
  if (plan.shape.eagle) requireEagleOf(target, plan.shape, file);
  if (plan.shape.assistant) requireAssistantOf(target, plan.shape.assistant, file);
  if (plan.shape.isRecurrent)
    throw unsupported(`${file} has recurrent state, from which rejected draft tokens cannot be removed`);
  return plan;
}

/** Removes `deterministic` from the options: a draft model does not change answers. */
const withoutPromise = (serving: ServingOptions): ServingOptions => ({
  ...serving,
  deterministic: false,
  speculation: false,
});

/** Loads a draft model. Fails with `INVALID_REQUEST` if its tokens differ from those of the target. */
export async function loadDraft(
  plan: GgufPlan,
  target: RunningModel,
  serving: ServingOptions,
  load: { signal: AbortSignal; onProgress: (fraction: number) => void },
): Promise<DraftModel> {
  const { tokenizer, engine } = target;
  const { eagle, assistant } = plan.shape;
  const loaded = await loadWeights({ ...plan, serving }, load);
  try {
    requireSameTokens(tokenizer, loaded.tokenizer, plan.file);
    if (eagle || assistant) {
      const file = { model: loaded.native, layers: eagle?.layers ?? [] };
      await atField(DRAFT_FIELD, () => engine.attachHead(file));
      return { handle: null, loaded, target };
    }
    const { vocabSize } = loaded.tokenizer;
    const limits = contextLimits(plan.options, withoutPromise(serving), loaded, vocabSize);
    const longest = Math.min(plan.options.contextSize!, loaded.contextLength);
    const handle = await loaded.createDraftModel(
      { ...limits, maxOutputs: limits.slotCount },
      { sampledTokens: tokenizer.vocabSize, longest },
    );
    return { handle, loaded, target };
  } catch (error) {
    loaded.close();
    throw error;
  }
}

export async function closeDraft({ handle, loaded, target }: DraftModel): Promise<void> {
  if (handle === null) await target.engine.detachHead();
  else await loadAddon().closeDraftModel(handle);
  loaded.close();
}

function requireEagleOf(target: RunningModel, { embeddingSize, eagle }: ModelShape, file: string): void {
  const other = (what: string, expected: string, found: unknown): OnpolicyError =>
    errorAt(
      DRAFT_FIELD,
      'INVALID_REQUEST',
      `expected an EAGLE-3 file of the large model, with ${what} ${expected}, got ${file} with ${found}`,
    );
  if (!isGguf(target.loaded)) throw unsupported('an EAGLE-3 file drafts for GGUF models only');
  const { shape } = target.loaded;
  const width = shape.embeddingSize;
  if (eagle!.embeddingSize !== width) throw other('target_hidden_size', `${width}`, eagle!.embeddingSize);
  if (eagle!.borrows && embeddingSize !== width) throw other('embedding_length', `${width}`, embeddingSize);
  const most = Math.max(...eagle!.layers);
  if (most >= shape.layers.length) throw other('target_layers', `below ${shape.layers.length}`, most);
}

function requireAssistantOf(target: RunningModel, assistant: AssistantFacts, file: string): void {
  const other = (what: string, expected: string, found: unknown): OnpolicyError =>
    errorAt(
      DRAFT_FIELD,
      'INVALID_REQUEST',
      `expected an assistant of the large model, with ${what} ${expected}, got ${file} with ${found}`,
    );
  if (!isGguf(target.loaded) || architectureOf(target.loaded) !== ASSISTED)
    throw unsupported(`an assistant drafts for models of ${ASSISTED} only`);
  const { embeddingSize, layers } = target.loaded.shape;
  if (assistant.embeddingSize !== embeddingSize)
    throw other('embedding_length_out', `${embeddingSize}`, assistant.embeddingSize);
  for (const { isWindow, keys, values } of assistant.borrowed) {
    const own = layers.filter((layer) => layer.isWindow === isWindow && layer.keys > 0);
    const kind = isWindow ? 'a window' : 'no window';
    const wrong = own.find((layer) => layer.keys !== keys || layer.values !== values);
    if (wrong || own.length === 0)
      throw other(
        `keys and values of ${wrong?.keys ?? 0} and ${wrong?.values ?? 0}`,
        `numbers in layers with ${kind}`,
        `${keys} and ${values}`,
      );
  }
}

/** Compares the tokens that both models have. One of them may have further ids, as padded vocabularies do. */
function requireSameTokens(target: Tokenizer, draft: Tokenizer, file: string): void {
  const shared = Math.min(target.vocabSize, draft.vocabSize);
  for (let id = 0; id < shared; id++) {
    if (Buffer.compare(target.bytesOf(id), draft.bytesOf(id)) === 0) continue;
    const show = (tokenizer: Tokenizer): string =>
      JSON.stringify(Buffer.from(tokenizer.bytesOf(id)).toString());
    throw errorAt(
      DRAFT_FIELD,
      'INVALID_REQUEST',
      `expected a model with the vocabulary of the large model, got ${file}: ` +
        `its token ${id} is ${show(draft)}, not ${show(target)}`,
    );
  }
}

function unsupported(reason: string): OnpolicyError {
  return errorAt(DRAFT_FIELD, 'UNSUPPORTED', reason);
}
