/** A file of the hub -> the same file here: goes on where an earlier download ended, and checks size and hash. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Called with the fraction that has arrived. */
export type OnProgress = (fraction: number) => void;

/** What is fetched. */
export type RemoteFile = {
  readonly url: string;
  /** Sent to the hub itself, not to where it redirects. */
  readonly token: string | null;
  readonly signal: AbortSignal;
  readonly onProgress?: OnProgress | undefined;
};

/** What the hub says of a file. */
type Facts = {
  /** Where the bytes are. */
  readonly url: string;
  /** Null: it does not say. */
  readonly size: number | null;
  /** Hex digits: SHA-256 of the bytes, or SHA-1 of the bytes as a blob of git. Null: neither. */
  readonly hash: string | null;
};

const GIT_HASH_LENGTH = 40;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * Downloads a file. False: there is no such file. Under its own name it shows only when it is whole and right; what came of it
 * before an end stays beside it for the next try.
 */
export async function downloadFile(file: RemoteFile, target: string): Promise<boolean> {
  const facts = await ask(file);
  if (facts === null) return false;
  fs.mkdirSync(path.dirname(target), { recursive: true });
  const rest = `${target}.${facts.hash?.slice(0, 16) ?? 'unknown'}.part`;
  const own = `${rest}.${process.pid}`; // one writer each; what another left is taken by renaming it
  adopt(rest, own, facts);
  try {
    await receive(file, facts, own);
    await verify(own, facts, file.url);
    fs.renameSync(own, target);
    return true;
  } catch (error) {
    if (error instanceof WrongFile || facts.hash === null) fs.rmSync(own, { force: true });
    else if (fs.existsSync(own)) fs.renameSync(own, rest);
    throw error;
  }
}

/** What arrived is not what the hub has. */
class WrongFile extends Error {}

async function ask({ url, token, signal }: RemoteFile): Promise<Facts | null> {
  const headers = {
    'accept-encoding': 'identity', // sizes are of the file itself
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
  let at = url;
  let facts: Omit<Facts, 'url'> = { size: null, hash: null };
  for (let hop = 0; hop < 5; hop++) {
    const isHub = new URL(at).origin === new URL(url).origin;
    const response = await fetch(at, {
      method: 'HEAD',
      redirect: 'manual',
      signal,
      headers: isHub ? headers : { 'accept-encoding': 'identity' },
    });
    if (response.status === 404) return null;
    const isRedirect = response.status >= 300 && response.status < 400;
    if (!response.ok && !isRedirect) throw new Error(`${at} answered ${response.status}`);
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

function toSize({ headers }: Response, isRedirect: boolean): number | null {
  const size = headers.get('x-linked-size') ?? (isRedirect ? null : headers.get('content-length'));
  return size === null ? null : Number(size);
}

function toHash(etag: string | null): string | null {
  const hash = etag?.replace(/^W\//, '').replaceAll('"', '') ?? '';
  return HASH.test(hash) ? hash : null;
}

/** Makes what an earlier download left the own file, also that of a process which is no more. */
function adopt(rest: string, own: string, { hash, size }: Facts): void {
  if (hash === null) return; // it may be of another version
  const folder = path.dirname(rest);
  const orphans = fs
    .readdirSync(folder)
    .filter(
      (name) => name.startsWith(`${path.basename(rest)}.`) && !isRunning(Number(name.split('.').at(-1))),
    )
    .map((name) => path.join(folder, name));
  for (const left of [rest, ...orphans]) {
    try {
      fs.renameSync(left, own);
      if (size === null || fs.statSync(own).size <= size) return;
      fs.rmSync(own);
    } catch {
      // not there, or another process took it
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function receive(
  { url, token, signal, onProgress }: RemoteFile,
  facts: Facts,
  own: string,
): Promise<void> {
  let arrived = fs.existsSync(own) ? fs.statSync(own).size : 0;
  if (arrived > 0 && arrived === facts.size) return;
  const isHub = new URL(facts.url).origin === new URL(url).origin;
  const response = await fetch(facts.url, {
    signal,
    headers: {
      'accept-encoding': 'identity',
      ...(isHub && token !== null ? { authorization: `Bearer ${token}` } : {}),
      ...(arrived > 0 ? { range: `bytes=${arrived}-` } : {}),
    },
  });
  if (!response.ok || !response.body) throw new Error(`${facts.url} answered ${response.status}`);
  if (response.status !== 206) arrived = 0; // the server sends all of it again
  await pipeline(
    Readable.fromWeb(response.body as never),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        arrived += chunk.length;
        if (facts.size) onProgress?.(Math.min(1, arrived / facts.size));
        yield chunk;
      }
    },
    fs.createWriteStream(own, { flags: arrived > 0 ? 'a' : 'w' }),
  );
}

/** Throws {@link WrongFile}, or an error that a longer download may mend. */
async function verify(file: string, { size, hash }: Facts, url: string): Promise<void> {
  const found = fs.existsSync(file) ? fs.statSync(file).size : 0;
  if (size !== null && found > size) throw new WrongFile(`${url}: expected ${size} bytes, got ${found}`);
  if (size !== null && found < size) throw new Error(`${url}: expected ${size} bytes, got ${found}`);
  if (hash === null) return;
  const isGit = hash.length === GIT_HASH_LENGTH;
  const sum = createHash(isGit ? 'sha1' : 'sha256');
  if (isGit) sum.update(`blob ${found}\0`);
  await pipeline(fs.createReadStream(file), sum);
  const got = sum.digest('hex');
  if (got !== hash) throw new WrongFile(`${url}: expected the hash ${hash}, got ${got}`);
}
