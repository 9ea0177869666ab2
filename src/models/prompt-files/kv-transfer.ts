/** The cache of a prompt -> a file and a handle, from which another process continues. Everything is checked before the engine sees it. */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import {
  DamagedFile,
  ifMissing,
  makeFolder,
  ownFolder,
  readSealed,
  storeFailed,
  writeSealed,
} from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { JsonObject, ValidChatRequest } from '../../protocol/index.ts';

/** Fields of a request's `kv_transfer_params`. */
export type KvTransfer =
  | { readonly kind: 'none' }
  /** Compute the prompt and save its cache. */
  | { readonly kind: 'save' }
  /** Continue from a saved one. */
  | { readonly kind: 'resume'; readonly handle: string };

type TransferRequest = Pick<ValidChatRequest, 'kv_transfer_params' | 'stream'>;

/** A saved cache. */
export type SavedCache = {
  readonly tokens: Int32Array; // (saved) what was computed
  readonly state: Uint8Array;
};

/** Identity of a saved cache. A process may load it only if all three fields match. */
export type CacheOwner = {
  /** Content of the model file. */
  readonly model: string;
  readonly adapter: string;
  /** Shape of the context's cache. */
  readonly context: string;
};

type Header = CacheOwner & { readonly tokens: number; readonly bytes: number };

/** Saved caches, in the folder that all processes which hand over to each other share. */
export const KV_TRANSFER_FOLDER = path.join(os.tmpdir(), `onpolicy-kv-${process.getuid?.() ?? 'user'}`);

const MAGIC = 'onpolicy-kv 1\n';
const HANDLE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OWN_NAME = new RegExp(`${HANDLE.source.slice(0, -1)}\\.kv((\\.[0-9a-f-]+)?\\.part)?$`);
/** Older files are deleted when the next one is saved. */
const KEPT_FOR_MS = 3_600_000;
/** Pieces of a model file in its digest. */
const SAMPLES = 256;
const SAMPLE_BYTES = 4096;

/** Reads `kv_transfer_params`. Fields of other engines are ignored. */
export function readKvTransfer({ kv_transfer_params: params, stream }: TransferRequest): KvTransfer {
  if (params === null) return { kind: 'none' };
  const { do_remote_decode: save, do_remote_prefill: resume } = params;
  const handle = params['handle'] ?? null;
  for (const [name, value] of Object.entries({ do_remote_decode: save, do_remote_prefill: resume }))
    if (value !== undefined && value !== null && typeof value !== 'boolean')
      throw invalid(`${name}: expected true or false`);
  if (save && (resume || handle !== null))
    throw invalid('do_remote_decode: expected it without the handle of a saved prompt');
  if (save && stream)
    throw invalid('do_remote_decode: expected it without stream, as no chunk carries the handle');
  if (save) return { kind: 'save' };
  if (handle === null && resume) throw invalid('handle: expected the handle of a saved prompt, got nothing');
  if (handle === null) return { kind: 'none' };
  if (typeof handle !== 'string' || !HANDLE.test(handle))
    throw invalid('handle: expected one that an answer returned');
  return { kind: 'resume', handle };
}

/** Writes a cache, deletes old ones, and returns the `kv_transfer_params` of the request that continues from it. */
export async function saveCache(
  folder: string,
  owner: CacheOwner,
  { tokens, state }: SavedCache,
): Promise<JsonObject> {
  const handle = randomUUID();
  const ids = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  const header: Header = { ...owner, tokens: tokens.length, bytes: ids.length + state.length };
  try {
    await makeFolder(folder, 0o700);
    const own = await ownFolder(folder, 'kvTransferFolder');
    await removeOld(own);
    const payload = Buffer.concat([ids, state]);
    await writeSealed(fileOf(own, handle), { magic: MAGIC, header, payload });
  } catch (cause) {
    throw storeFailed('kv_transfer_params: cannot save the cache of the prompt', cause);
  }
  return { do_remote_prefill: true, do_remote_decode: false, handle, tokens: tokens.length };
}

/** Reads a saved cache for this owner and a prompt that begins with its tokens. */
export async function loadCache(
  folder: string,
  owner: CacheOwner,
  handle: string,
  prompt: Int32Array,
): Promise<SavedCache> {
  const own = await ownFolder(folder, 'kvTransferFolder').catch(ifMissing(null));
  const found = own === null ? null : await open(fileOf(own, handle)).catch(ifMissing(null));
  if (found === null) throw invalid('handle: there is no saved prompt of this name');
  const { header, payload } = found;
  for (const part of ['model', 'adapter', 'context'] as const)
    if (header[part] !== owner[part]) throw invalid(`handle: the saved prompt belongs to another ${part}`);
  const ids = payload.subarray(0, 4 * header.tokens);
  const tokens = new Int32Array(header.tokens);
  new Uint8Array(tokens.buffer).set(ids);
  if (tokens.length > prompt.length || tokens.some((token, at) => token !== prompt[at]))
    throw invalid('handle: the saved prompt is not the beginning of this request');
  return { tokens, state: payload.subarray(4 * header.tokens) };
}

/** A digest of a model file: of its size, and of pieces from all over it. */
export async function digestModel(file: string): Promise<string> {
  const handle = await fs.open(file);
  try {
    const { size } = await handle.stat();
    const hash = createHash('sha256').update(String(size));
    const piece = Buffer.alloc(SAMPLE_BYTES);
    for (let i = 0; i < SAMPLES; i++) {
      const at = Math.floor((Math.max(0, size - SAMPLE_BYTES) * i) / (SAMPLES - 1));
      const { bytesRead } = await handle.read(piece, 0, SAMPLE_BYTES, at);
      hash.update(piece.subarray(0, bytesRead));
    }
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}

async function open(file: string): Promise<{ header: Header; payload: Uint8Array }> {
  try {
    const { header, payload } = await readSealed<Header>(file, MAGIC);
    const { tokens, bytes } = header;
    const isSound =
      payload.length === bytes && Number.isInteger(tokens) && tokens > 0 && 4 * tokens <= payload.length;
    if (isSound) return { header, payload };
  } catch (error) {
    if (!(error instanceof DamagedFile)) throw error;
  }
  throw invalid('handle: the saved prompt is damaged');
}

async function removeOld(folder: string): Promise<void> {
  for (const name of await fs.readdir(folder)) {
    if (!OWN_NAME.test(name)) continue;
    const file = path.join(folder, name);
    const stat = await fs.stat(file).catch(ifMissing(null)); // another process may have removed it
    if (stat?.isFile() && Date.now() - stat.mtimeMs > KEPT_FOR_MS) await fs.rm(file, { force: true });
  }
}

function fileOf(folder: string, handle: string): string {
  return path.join(folder, `${handle}.kv`);
}

function invalid(reason: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', `kv_transfer_params.${reason}`, {
    param: 'kv_transfer_params',
  });
}
