/** Files that survive a crash: a reader sees the old content or the new one, and what was acknowledged is on the disk. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { errorAt, messageOf, OnpolicyError } from '../errors.ts';

/** Writes a file whole and flushes it. Not for a file that others may be reading: see {@link replaceFile}. */
export async function writeFlushed(file: string, parts: readonly (string | Uint8Array)[]): Promise<void> {
  await writing(file, () => write(file, parts));
}

async function write(file: string, parts: readonly (string | Uint8Array)[]): Promise<void> {
  await using handle = await fs.open(file, 'w');
  for (const part of parts) if (part.length > 0) await handle.writeFile(part);
  await handle.sync();
}

/** Work that writes to `place`: what the disk fails with is `STORE_FAILED`, which names the place. */
export async function writing<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw storeFailed(`cannot write ${place}`, cause);
  }
}

/** Puts new content in a file's place, at once: a temporary file, flushed, renamed. */
export async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${file}.${randomUUID()}.new`;
  await writing(file, async () => {
    try {
      await write(temporary, [content]);
      await rename(temporary, file);
    } catch (error) {
      await fs.rm(temporary, { force: true });
      throw error;
    }
    await flushFolder(path.dirname(file));
  });
}

/** What Windows says of a file or folder that another process, a virus scanner for example, has open. */
const OPEN_ELSEWHERE = ['EPERM', 'EACCES', 'EBUSY'];
const RETRIES = 100;
const RETRY_MS = 20;

/** Renames a file, over another one too, or a folder. On Windows it waits up to two seconds for others to close theirs. */
export async function rename(from: string, to: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await fs.rename(from, to);
    } catch (error) {
      const isOpen = OPEN_ELSEWHERE.includes((error as { code?: string }).code ?? '');
      if (process.platform !== 'win32' || !isOpen || tries === RETRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Makes the folder's own entries durable. Windows has no such thing, and needs none. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await fs.open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** Bits of a folder's mode. */
const OTHERS_WRITE = 0o022;

/** A folder without links. Fails when others may put files there; `option` named it: a saved cache is as good as who wrote it. */
export async function ownFolder(folder: string, option: string): Promise<string> {
  const real = await fs.realpath(folder);
  const { uid, mode } = await fs.stat(real);
  const me = process.getuid?.();
  if (me === undefined || (uid === me && (mode & OTHERS_WRITE) === 0)) return real;
  throw errorAt(
    option,
    'STORE_FAILED',
    `expected a folder of this user (${me}) that only it may write to, got ${real} of user ${uid} with mode ${(mode & 0o777).toString(8)}`,
  );
}

/** Makes a folder and those above it. Node's own way never ends below a folder that says of new ones that they do not exist, as `/proc`. */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  try {
    await fs.mkdir(folder, mode);
  } catch (error) {
    const { code } = error as { code?: string };
    const above = path.dirname(folder);
    if (code === 'EEXIST' && (await fs.stat(folder)).isDirectory()) return;
    if (code !== 'ENOENT' || above === folder) throw error;
    if (!(await isFolder(above))) await makeFolder(above, mode); // else others made it meanwhile, or the system makes none in it
    await fs.mkdir(folder, mode).catch((failure: { code?: string }) => {
      if (failure.code !== 'EEXIST') throw failure; // made by another process meanwhile
    });
  }
}

async function isFolder(name: string): Promise<boolean> {
  return await fs.stat(name).then(
    (stat) => stat.isDirectory(),
    () => false,
  );
}

/** A failure of the disk as our error; our own errors pass. */
export function storeFailed(what: string, cause: unknown): OnpolicyError {
  if (cause instanceof OnpolicyError) return cause;
  const { code = '' } = cause as { code?: string };
  const why = ['ENOSPC', 'EDQUOT'].includes(code) ? 'the disk is full' : messageOf(cause);
  return new OnpolicyError('STORE_FAILED', `${what}: ${why}`, { cause });
}

/** An error handler that returns `value` for a missing file or folder. Other errors are no absence: they are thrown as `STORE_FAILED`. */
export function ifMissing<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (isMissing(error)) return value;
    throw storeFailed('the file system failed', error);
  };
}

/** The text of a file; null if there is none. */
export async function readText(file: string): Promise<string | null> {
  return await fs.readFile(file, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw storeFailed(`cannot read ${file}`, error);
  });
}

/** What is said where nothing is, and of a path that nothing can have: too long, in a circle, or with a zero byte. */
const NOTHING_THERE = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ERR_INVALID_ARG_VALUE'];

/** Whether an error says that there is no such file or folder. */
export function isMissing(error: unknown): boolean {
  return NOTHING_THERE.includes((error as { code?: string }).code ?? '');
}
