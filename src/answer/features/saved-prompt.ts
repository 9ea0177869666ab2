/** `kv_transfer_params` of a request -> its prompt's cache saved for others, or loaded from where another process saved it. */

import type { Engine, Group, SavedPrompt } from '../../engine/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { LoadedModel } from '../../models/formats/index.ts';
import { portableIds } from '../../models/media/index.ts';
import { type CacheOwner, digestModel, loadCache, saveCache } from '../../models/prompt-files/index.ts';
import type { ChatCompletion, JsonObject } from '../../protocol/index.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

/** Loads the saved prompt of a request before the request is submitted. Fails with `INVALID_REQUEST` if it is from another model. */
export async function savedPrompt(opened: OpenedRequest): Promise<Feature | null> {
  const { transfer, model, group } = opened;
  const { kvTransferFolder: folder } = opened.context;
  const ids = portableIds(opened.prompt); // the same in every process
  const owner = await ownerOf(opened);
  if (transfer.kind === 'resume') {
    const { tokens, state } = await loadCache(folder, owner, transfer.handle, ids);
    await adopt(model.engine, group, group.prompt.subarray(0, tokens.length), state);
    return null;
  }
  const saved: SavedPrompt = { state: null, tokens: 0 };
  let params: JsonObject | null = null;
  return {
    part: ({ index }) => (index === 0 ? { extras: { savedPrompt: saved } } : null),
    async finish() {
      params = await saveCache(folder, owner, { tokens: ids.subarray(0, saved.tokens), state: saved.state! });
    },
    fields: () => ({ kv_transfer_params: params as ChatCompletion['kv_transfer_params'] }),
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

/** Returns the identity of the model and adapter that compute a prompt. The digest of the model's files is computed once. */
async function ownerOf({ model: { loaded, engine }, adapter }: OpenedRequest): Promise<CacheOwner> {
  let digest = digests.get(loaded);
  if (!digest) {
    digest = Promise.all(loaded.files.map(digestModel)).then((parts) => parts.join(' '));
    digests.set(loaded, digest);
    digest.catch(() => digests.delete(loaded));
  }
  return { model: await digest, adapter: adapter?.identity ?? '', context: engine.cacheShape };
}
