/** A model at the hub -> its headers in a temporary folder, to read its facts before it is downloaded. */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { HubOptions } from '../protocol/index.ts';
import { type FoundModel, fetchHeader, fileAddress, listFiles } from './hub/index.ts';
import { chooseProjector } from './hub-projector.ts';

/** Files with the sizes of a model's files and only their headers as content. */
export type RemoteModel = AsyncDisposable & { readonly file: string };

/** Fetches the headers of a model and of the projector in its repository. */
export async function openRemoteModel(
  { reference, model, files }: FoundModel,
  hub: HubOptions,
  signal: AbortSignal,
): Promise<RemoteModel> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'onpolicy-header-'));
  const remove = (): Promise<void> => fs.rm(folder, { recursive: true, force: true });
  try {
    const [first] = model.files;
    const listed = files ?? (await listFiles(reference, hub, signal).catch(() => null)) ?? [];
    const names = listed.map((one) => one.path);
    const projector = chooseProjector(names, path.posix.dirname(first!.path));
    const wanted = [...model.files.map((one) => one.path), ...(projector === null ? [] : [projector])];
    const place = (name: string): string => path.join(folder, path.posix.basename(name));
    for (const name of wanted) {
      const url = fileAddress(reference, name, hub);
      await fetchHeader({ url, token: hub.token ?? null, signal }, place(name));
    }
    return { file: place(first!.path), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
