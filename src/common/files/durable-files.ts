/** Content -> files that survive a crash: a reader sees either the old or the new content, and acknowledged writes are on the disk. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { errorAt, messageOf, OnpolicyError } from '../../errors.ts';

/** Writes a complete file and flushes it. Use {@link replaceFile} for a file that others may be reading. */
export async function writeFlushed(
  file: string,
  parts: readonly (string | Uint8Array)[],
  mode?: number,
): Promise<void> {
  await writing(file, () => write(file, parts, mode));
}

async function write(file: string, parts: readonly (string | Uint8Array)[], mode?: number): Promise<void> {
  await using handle = await fs.open(file, 'w', mode);
  for (const part of parts) if (part.length > 0) await handle.writeFile(part);
  await handle.sync();
}

/** Runs `work`, which writes to `place`. Errors of the disk become `STORE_FAILED` and name the place. */
export async function writing<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw storeFailed(`cannot write ${place}`, cause);
  }
}

/** Replaces a file's content atomically: writes a temporary file, flushes it, and renames it. */
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

/**
 * Publishes a folder atomically: `write` fills `temporary`, so that a crash leaves nothing at `target`. After an error `temporary` is
 * removed. `what` names the target in errors.
 */
export async function publishFolder(
  { target, temporary, what = target }: Publication,
  write: (folder: string) => Promise<void>,
): Promise<void> {
  try {
    await write(temporary);
    await writing(what, async () => {
      await flushFolder(temporary);
      await makeFolder(path.dirname(target));
      await rename(temporary, target);
      await flushFolder(path.dirname(target));
    });
  } catch (error) {
    await fs.rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

type Publication = { readonly target: string; readonly temporary: string; readonly what?: string };

/** Moves a complete file or folder to its target and flushes it. A folder at the target is moved away first and then removed. */
export async function replaceWith(temporary: string, target: string): Promise<void> {
  const isFolder = (await fs.stat(temporary)).isDirectory();
  if (!isFolder) await flushFile(temporary);
  const former = await fs.stat(target).catch(ifMissing(null));
  const aside = `${target}.${randomUUID()}.old`;
  const isMoved = former !== null && (isFolder || former.isDirectory());
  if (isMoved) await rename(target, aside);
  await rename(temporary, target);
  await flushFolder(path.dirname(target));
  if (isMoved) await fs.rm(aside, { recursive: true, force: true });
}

/** Windows' error codes for a file or folder that another process, such as a virus scanner, has open. */
const OPEN_ELSEWHERE = ['EPERM', 'EACCES', 'EBUSY'];
const RETRIES = 100;
const RETRY_MS = 20;

/** Renames a file or folder; a file may replace another one. On Windows it waits up to two seconds for others to close theirs. */
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

async function flushFile(file: string): Promise<void> {
  await using handle = await fs.open(file, 'r+');
  await handle.sync();
}

/** Makes the folder's entries durable. Windows has no such operation and does not need it. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await fs.open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** Bits of a folder's mode that let others write. */
const OTHERS_WRITE = 0o022;

/**
 * Resolves the links of a folder. Fails if other users may write to it, because saved caches in it are trusted; `option` names it in the
 * error.
 */
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

/**
 * Creates a folder and its parents. Node's recursive `mkdir` never ends below folders such as `/proc`, which report new folders as missing.
 */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  try {
    await fs.mkdir(folder, mode);
  } catch (error) {
    const { code } = error as { code?: string };
    const above = path.dirname(folder);
    if (code === 'EEXIST' && (await fs.stat(folder)).isDirectory()) return;
    if (code !== 'ENOENT' || above === folder) throw error;
    if (!(await isFolder(above))) await makeFolder(above, mode); // else others created it meanwhile, or the system allows no folder in it
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

/** Wraps an error of the disk. Errors of this library are returned unchanged. */
export function storeFailed(what: string, cause: unknown): OnpolicyError {
  if (cause instanceof OnpolicyError) return cause;
  const { code = '' } = cause as { code?: string };
  const why = ['ENOSPC', 'EDQUOT'].includes(code) ? 'the disk is full' : messageOf(cause);
  return new OnpolicyError('STORE_FAILED', `${what}: ${why}`, { cause });
}

/** Returns an error handler that returns `value` for a missing file or folder, and throws other errors as `STORE_FAILED`. */
export function ifMissing<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (isMissing(error)) return value;
    throw storeFailed('the file system failed', error);
  };
}

/** Returns the text of a file, or null if it does not exist. */
export async function readText(file: string): Promise<string | null> {
  return await fs.readFile(file, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw storeFailed(`cannot read ${file}`, error);
  });
}

/** Error codes of a missing file, and of a path that cannot exist: too long, with circular links, or with a zero byte. */
const NOTHING_THERE = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ERR_INVALID_ARG_VALUE'];

/** Returns true if an error says that a file or folder does not exist. */
export function isMissing(error: unknown): boolean {
  return NOTHING_THERE.includes((error as { code?: string }).code ?? '');
}
