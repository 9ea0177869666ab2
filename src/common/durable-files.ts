/** Files that survive a crash: a reader sees the old content or the new one, and what was acknowledged is on the disk. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { messageOf, OnpolicyError } from '../errors.ts';

/** Writes a file whole and flushes it. Not for a file that others may be reading: see {@link replaceFile}. */
export async function writeFlushed(file: string, parts: readonly (string | Uint8Array)[]): Promise<void> {
  const handle = await fs.open(file, 'w');
  try {
    for (const part of parts) if (part.length > 0) await handle.writeFile(part);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Puts new content in a file's place, at once: a temporary file, flushed, renamed. */
export async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${file}.${randomUUID()}.new`;
  try {
    await writeFlushed(temporary, [content]);
    await rename(temporary, file);
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw error;
  }
  await flushFolder(path.dirname(file));
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

/** A failure of the disk as our error; our own errors pass. */
export function storeFailed(what: string, cause: unknown): OnpolicyError {
  if (cause instanceof OnpolicyError) return cause;
  const { code } = cause as { code?: string };
  const why = code === 'ENOSPC' || code === 'EDQUOT' ? 'the disk is full' : messageOf(cause);
  return new OnpolicyError('STORE_FAILED', `${what}: ${why}`, { cause });
}
