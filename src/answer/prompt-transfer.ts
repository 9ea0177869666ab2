/** `kv_transfer_params` of a request -> its prompt's cache saved for others, or loaded from where another process saved it. */
import type { LoadedModel } from '../backends/index.ts';
import type { Engine, Group, SavedPrompt } from '../engine/index.ts';
import { type CacheOwner, digestModel, type KvTransfer, loadCache, saveCache } from '../engine/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { RunningModel } from '../models/index.ts';
import type { JsonObject } from '../protocol/index.ts';

/** The two ends of a transfer. */
export type PromptTransfer = {
  /** Receives the cache of the prompt; null if it is not saved. */
  readonly savedPrompt: SavedPrompt | null;
  /** `kv_transfer_params` of the answer, once it is done. */
  finish(): Promise<JsonObject | null>;
};

/** Sequences share a saved prompt only with those that name its handle. Null: nothing is loaded. */
export function transferKey(transfer: KvTransfer): string | null {
  return transfer.kind === 'resume' ? `handle ${transfer.handle}` : null;
}

/** What computed a prompt: a model, and the identity of the adapter beside it; empty: none. */
export type PromptOwner = { readonly model: RunningModel; readonly adapter: string };

/** Where saved prompts lie, and the ids of this prompt in them: the same in every process. */
export type TransferPlace = { readonly folder: string; readonly ids: Int32Array };

/** Loads the saved prompt of a request before it is submitted. Fails with `INVALID_REQUEST` if that is of another model. */
export async function beginTransfer(
  transfer: KvTransfer,
  promptOwner: PromptOwner,
  group: Group,
  { folder, ids }: TransferPlace,
): Promise<PromptTransfer> {
  if (transfer.kind === 'none') return { savedPrompt: null, finish: async () => null };
  const { engine } = promptOwner.model;
  const owner = await ownerOf(promptOwner);
  if (transfer.kind === 'resume') {
    const { tokens, state } = await loadCache(folder, owner, transfer.handle, ids);
    await adopt(engine, group, group.prompt.subarray(0, tokens.length), state);
    return { savedPrompt: null, finish: async () => null };
  }
  const savedPrompt: SavedPrompt = { state: null, tokens: 0 };
  return {
    savedPrompt,
    finish: () =>
      saveCache(folder, owner, { tokens: ids.subarray(0, savedPrompt.tokens), state: savedPrompt.state! }),
  };
}

async function adopt(engine: Engine, group: Group, tokens: Int32Array, state: Uint8Array): Promise<void> {
  try {
    await engine.adopt(group, tokens, state);
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'KV_FULL') throw cause;
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'kv_transfer_params.handle: the saved prompt belongs to another context',
      {
        cause,
        param: 'kv_transfer_params',
      },
    );
  }
}

const digests = new WeakMap<LoadedModel, Promise<string>>();

async function ownerOf({ model: { loaded, engine }, adapter }: PromptOwner): Promise<CacheOwner> {
  let digest = digests.get(loaded);
  if (!digest) {
    digest = Promise.all(loaded.files.map(digestModel)).then((parts) => parts.join(' '));
    digests.set(loaded, digest);
    digest.catch(() => digests.delete(loaded));
  }
  return { model: await digest, adapter, context: engine.cacheShape };
}
