/**
 * A folder -> the lock of its one writer, which is a folder with the writer's name. The lock of a dead process on this machine is released
 * at once.
 */
import { randomUUID } from 'node:crypto';
import fs, { existsSync, renameSync } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { callbackify } from 'node:util';
// Imported at the start: it adds signal listeners, and a late import would end a program whose `process.once` listeners were added before.
import { lock } from 'proper-lockfile';
import { OnpolicyError } from '../../errors.ts';
import {
  ifMissing,
  isDead,
  makeFolder,
  type ProcessIdentity,
  parseJson,
  readText,
  rename,
  thisProcess,
  writeFlushed,
} from '../index.ts';

/** A writer on another machine counts as dead if it has not updated its lock for this long. */
const STALE_MS = 15_000;
const UPDATE_MS = 3_000;
/** The lock around acquiring the writer lock. It is held for milliseconds; that of a dead process expires within three seconds. */
const ACQUIRE_LOCK = { stale: 2_000, retries: { retries: 100, minTimeout: 50, factor: 1 } };

/** File in the lock's folder with the identity of its holder. */
const NAME = 'writer.json';

/** The process that writes. */
export type Writer = ProcessIdentity & {
  /** Id of this acquisition of the lock. Running jobs are marked with it. */
  readonly session: string;
  /** Seconds since 1970. */
  readonly since: number;
};

/** An acquired lock. */
export type WriterLock = {
  /** Returns false if another process took the lock over, because this one did not update it for too long. */
  readonly isHeld: () => boolean;
  release(): Promise<void>;
};

/**
 * Acquires the lock of a folder for this process. `what`: the folder in words.
 * @throws OnpolicyError `STORE_FAILED` if another process holds it
 */
export async function lockForWriting(what: string, folder: string, session: string): Promise<WriterLock> {
  await makeFolder(path.join(folder, 'trash'));
  const main = lockFolder(folder);
  // Detecting a dead writer and replacing it must be atomic: two processes must not both replace it.
  const releaseOuter = await lock(folder, {
    ...ACQUIRE_LOCK,
    realpath: false,
    lockfilePath: path.join(folder, '.door'),
    onCompromised: () => {}, // harmless: the second lock decides
  });
  try {
    const writer = await readWriter(folder);
    if (writer && isDead(writer)) await discard(main).catch(ifMissing(undefined)); // another process may have removed it
    let isHeld = true;
    const release = await lock(main, {
      fs: namedLocks({ session, ...thisProcess(), since: Math.floor(Date.now() / 1000) }),
      realpath: false,
      lockfilePath: main,
      stale: STALE_MS,
      update: UPDATE_MS,
      onCompromised: () => {
        isHeld = false;
      },
    }).catch((cause: unknown) => {
      if ((cause as { code?: string }).code === 'ELOCKED') throw lockedBy(`${what} ${folder}`, writer, cause);
      throw cause;
    });
    return {
      isHeld: () => isHeld,
      release: async () => {
        if (isHeld) await release();
        isHeld = false;
      },
    };
  } finally {
    await releaseOuter().catch(() => {}); // compromised: another process holds it
  }
}

/** Returns the current writer of the folder, or null. */
export async function currentWriter(folder: string): Promise<Writer | null> {
  const held = await stat(lockFolder(folder)).catch(ifMissing(null));
  if (!held || held.mtimeMs < Date.now() - STALE_MS) return null;
  const writer = await readWriter(folder);
  return writer && !isDead(writer) ? writer : null;
}

function lockFolder(folder: string): string {
  return path.join(folder, '.lock');
}

/** Removes a lock at once, together with the name in it. */
async function discard(folder: string): Promise<void> {
  const discarded = trashOf(folder);
  await rename(folder, discarded);
  await rm(discarded, { recursive: true, force: true });
}

/** Returns a path in the trash, whose leftovers the next writer removes. */
function trashOf(folder: string): string {
  return path.join(path.dirname(folder), 'trash', `lock.${randomUUID()}`);
}

/**
 * Returns file functions for a lock that is created and removed together with its writer's name, because a process may die at any moment.
 */
function namedLocks(writer: Writer): object {
  const create = async (folder: string): Promise<void> => {
    const draft = `${folder}.new`; // only the process that acquires the lock uses it
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft);
    await writeFlushed(path.join(draft, NAME), [`${JSON.stringify(writer)}\n`]);
    if (existsSync(folder)) throw Object.assign(new Error(`${folder} is there already`), { code: 'EEXIST' });
    await rename(draft, folder);
  };
  return {
    ...fs,
    mkdir: callbackify(create),
    rmdir: callbackify(discard),
    rmdirSync: (folder: string) => renameSync(folder, trashOf(folder)),
  };
}

async function readWriter(folder: string): Promise<Writer | null> {
  const text = await readText(path.join(lockFolder(folder), NAME));
  return text === null ? null : (parseJson(text, null) as Writer | null); // null: a file of another program, without a valid name
}

function lockedBy(what: string, writer: Writer | null, cause: unknown): OnpolicyError {
  const who = writer ? `process ${writer.pid} on ${writer.host}` : 'another process';
  return new OnpolicyError(
    'STORE_FAILED',
    `${who} writes to ${what}: this process can only read it, until that one is closed`,
    { cause },
  );
}
