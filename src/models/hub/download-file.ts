/** A file of the hub -> the same file on the local disk: continues an earlier download, and checks disk space, size and hash. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder, mib, rename, storeFailed } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { isBeingWritten, ownPart } from './part-files.ts';

/** Progress of a download. */
export type Progress = {
  /** Bytes received so far, those of earlier downloads included. */
  readonly bytes: number;
  /** Null if the hub does not say. */
  readonly totalBytes: number | null;
  readonly bytesPerSecond: number;
  /** Null while it cannot be estimated. */
  readonly secondsLeft: number | null;
};

export type RemoteFile = {
  readonly url: string;
  /** Sent only to the hub itself, never to a host that it redirects to. */
  readonly token: string | null;
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Size and hash from a list of files. */
  readonly listed?: Pick<Facts, 'size' | 'hash'> | undefined;
};

/** Facts about a file that the hub states. */
export type Facts = {
  /** Address of the bytes. */
  readonly url: string;
  /** Null if the hub does not say. */
  readonly size: number | null;
  /** Hex digits: SHA-256 of the bytes, or SHA-1 of the bytes as a git blob. Null if the hub states neither. */
  readonly hash: string | null;
};

const GIT_HASH_LENGTH = 40;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** Connections in a row without any bytes after which a download fails. */
const MAX_IDLE = 3;
const RETRY_MS = 250;
/** Period over which the rate is measured. */
const RATE_MS = 3000;
/** Bytes that a download leaves free on the disk. */
const SPARE_BYTES = 2 ** 24;

/**
 * Downloads a file. Returns null if the hub has no such file. The target appears only when it is complete and verified; bytes of an
 * interrupted download stay beside it for the next attempt. Fails with `STORE_FAILED` if the disk has no room, and with the errors of
 * fetch.
 */
export async function downloadFile(file: RemoteFile, target: string): Promise<Facts | null> {
  const facts = await ask(file);
  if (facts === null) return null;
  await makeFolder(path.dirname(target)).catch(diskFailed(target));
  const rest = `${target}.${facts.hash?.slice(0, 16) ?? 'unknown'}.part`;
  const own = ownPart(rest); // each process has one file, and takes over those of others by renaming them
  await adopt(rest, own, facts);
  try {
    await requireRoom(own, facts);
    await receiveAll(file, facts, own);
    await verify(own, facts, file.url);
    await rename(own, target);
    return facts;
  } catch (error) {
    if (error instanceof WrongFile || facts.hash === null) fs.rmSync(own, { force: true });
    else if (fs.existsSync(own)) await rename(own, rest);
    throw error;
  }
}

/** Returns the hash of a file's content, of the same kind as `like`. */
export async function hashOf(file: string, like: string): Promise<string> {
  const isGit = like.length === GIT_HASH_LENGTH;
  const sum = createHash(isGit ? 'sha1' : 'sha256');
  if (isGit) sum.update(`blob ${sizeOf(file)}\0`);
  await pipeline(fs.createReadStream(file), sum);
  return sum.digest('hex');
}

/** Returns why a connection to the hub failed: the message of `fetch` itself only says that it did. */
export function networkReason(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string; code?: string } };
  const why = cause?.message || cause?.code;
  return why ? `${message}: ${why}` : String(message ?? error);
}

/** The received bytes differ from the file at the hub. */
class WrongFile extends Error {}

/** The hub answered with an error that a retry will not change. */
class Refused extends Error {}

async function ask({ url, token, signal, listed }: RemoteFile): Promise<Facts | null> {
  let at = url;
  let facts: Omit<Facts, 'url'> = { size: listed?.size ?? null, hash: listed?.hash ?? null };
  for (let hop = 0; hop < 5; hop++) {
    const response = await fetch(at, {
      method: 'HEAD',
      redirect: 'manual',
      signal,
      headers: headersFor(at, url, token),
    });
    if (response.status === 404) return null;
    const isRedirect = response.status >= 300 && response.status < 400;
    if (!response.ok && !isRedirect) throw new Refused(`${at} answered ${response.status}`);
    facts = {
      size: facts.size ?? toSize(response, isRedirect),
      hash: facts.hash ?? toHash(response.headers.get('x-linked-etag') ?? response.headers.get('etag')),
    };
    const next = isRedirect ? response.headers.get('location') : null;
    if (next === null) return { url: at, ...facts };
    at = new URL(next, at).href;
  }
  throw new Error(`${url} redirects too often`);
}

/** Requests the encoding `identity`, because sizes are those of the file itself. */
function headersFor(at: string, hub: string, token: string | null): Record<string, string> {
  const isHub = new URL(at).origin === new URL(hub).origin;
  return {
    'accept-encoding': 'identity',
    ...(isHub && token !== null ? { authorization: `Bearer ${token}` } : {}),
  };
}

function toSize({ headers }: Response, isRedirect: boolean): number | null {
  const size = headers.get('x-linked-size') ?? (isRedirect ? null : headers.get('content-length'));
  return size === null ? null : Number(size);
}

function toHash(etag: string | null): string | null {
  const hash = etag?.replace(/^W\//, '').replaceAll('"', '') ?? '';
  return HASH.test(hash) ? hash : null;
}

/** Takes over the partial file of an earlier download, including that of a process that ended. */
async function adopt(rest: string, own: string, { hash, size }: Facts): Promise<void> {
  if (hash === null) return; // it may be of another version
  const folder = path.dirname(rest);
  const orphans = fs
    .readdirSync(folder)
    .filter((name) => name.startsWith(`${path.basename(rest)}.`))
    .map((name) => path.join(folder, name))
    .filter((part) => !isBeingWritten(part));
  for (const left of [rest, ...orphans]) {
    try {
      await rename(left, own);
      if (size === null || fs.statSync(own).size <= size) return;
      fs.rmSync(own);
    } catch {
      // the file is gone, or another process took it
    }
  }
}

async function requireRoom(own: string, { size }: Facts): Promise<void> {
  const wanted = (size ?? 0) - sizeOf(own);
  const { bavail, bsize } = await fs.promises.statfs(path.dirname(own));
  const free = bavail * bsize;
  if (wanted + SPARE_BYTES <= free) return;
  throw new OnpolicyError(
    'STORE_FAILED',
    `no room in ${path.dirname(own)}: ${mib(wanted)} are needed, and ${mib(free)} are free`,
  );
}

/** Receives the rest of a file, over as many connections as it takes. */
async function receiveAll(file: RemoteFile, facts: Facts, own: string): Promise<void> {
  const onBytes = meter(file, facts, sizeOf(own));
  for (let idle = 0; ; ) {
    const before = sizeOf(own);
    let failure: unknown = null;
    try {
      await receive(file, facts, own, onBytes);
      if (facts.size === null || sizeOf(own) >= facts.size) return;
    } catch (error) {
      if (file.signal.aborted || error instanceof Refused || error instanceof OnpolicyError) throw error;
      failure = error;
    }
    idle = sizeOf(own) > before ? 0 : idle + 1;
    if (idle >= MAX_IDLE)
      throw failure ?? new Error(`${file.url}: expected ${facts.size} bytes, got ${sizeOf(own)}`);
    await sleep(RETRY_MS * 2 ** idle, null, { signal: file.signal });
  }
}

async function receive(
  { url, token, signal }: RemoteFile,
  facts: Facts,
  own: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  let arrived = sizeOf(own);
  if (arrived > 0 && arrived === facts.size) return;
  const response = await fetch(facts.url, {
    signal,
    headers: {
      ...headersFor(facts.url, url, token),
      ...(arrived > 0 ? { range: `bytes=${arrived}-` } : {}),
    },
  });
  if (response.status >= 400 && response.status < 500 && response.status !== 429)
    throw new Refused(`${facts.url} answered ${response.status}`);
  if (!response.ok || !response.body) throw new Error(`${facts.url} answered ${response.status}`);
  if (response.status !== 206) arrived = 0; // the server sends all of it again
  const out = fs.createWriteStream(own, { flags: arrived > 0 ? 'a' : 'w' });
  let diskError: unknown = null;
  out.on('error', (error) => {
    diskError = error;
  });
  try {
    await pipeline(
      Readable.fromWeb(response.body as never),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          arrived += chunk.length;
          onBytes(arrived);
          yield chunk;
        }
      },
      out,
    );
  } catch (error) {
    if (diskError !== null) diskFailed(own)(diskError);
    throw error;
  }
}

function diskFailed(file: string): (cause: unknown) => never {
  return (cause) => {
    throw storeFailed(`cannot write ${file}`, cause);
  };
}

/** Turns the number of bytes received into progress. `before`: bytes of an earlier download. */
function meter({ onProgress }: RemoteFile, { size }: Facts, before: number): (bytes: number) => void {
  let mark = { ms: performance.now(), bytes: before };
  let former = mark;
  return (bytes) => {
    const ms = performance.now();
    if (bytes < mark.bytes) former = mark = { ms, bytes }; // from its beginning again
    const bytesPerSecond = (1000 * (bytes - former.bytes)) / Math.max(ms - former.ms, 1);
    if (ms - mark.ms >= RATE_MS) {
      former = mark;
      mark = { ms, bytes };
    }
    const isKnown = size !== null && bytesPerSecond > 0;
    const secondsLeft = isKnown ? Math.max(0, size - bytes) / bytesPerSecond : null;
    onProgress?.({ bytes, totalBytes: size, bytesPerSecond, secondsLeft });
  };
}

async function verify(file: string, { size, hash }: Facts, url: string): Promise<void> {
  const found = sizeOf(file);
  if (size !== null && found !== size) throw new WrongFile(`${url}: expected ${size} bytes, got ${found}`);
  if (hash === null) return;
  const got = await hashOf(file, hash);
  if (got !== hash) throw new WrongFile(`${url}: expected the hash ${hash}, got ${got}`);
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
