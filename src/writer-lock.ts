/** A folder -> the lock of its one writer, a folder with its name. The lock of a dead process on this machine is released at once. */
import { randomUUID } from 'node:crypto';
import fs, { existsSync, renameSync } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { callbackify } from 'node:util';
// Not loaded later: it listens for signals, and would end a program whose own `process.once` listeners were there before.
import { lock } from 'proper-lockfile';
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
} from './common/index.ts';
import { OnpolicyError } from './errors.ts';

/** A writer on another machine counts as dead after so long without an update of its lock. */
const STALE_MS = 15_000;
const UPDATE_MS = 3_000;
/** The lock around acquiring the writer lock; it is held for milliseconds, and of a dead process counts for up to three seconds. */
const ACQUIRE_LOCK = { stale: 2_000, retries: { retries: 100, minTimeout: 50, factor: 1 } };

/** The file in the lock's folder that says who holds it. */
const NAME = 'writer.json';

/** The process that writes. */
export type Writer = ProcessIdentity & {
  /** Id of this hold of the lock; running jobs are marked with it. */
  readonly session: string;
  /** Seconds since 1970. */
  readonly since: number;
};

/** A hold of the lock. */
export type WriterLock = {
  /** False if another process took the lock over, because this one did not update it for too long. */
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

/** The current writer of the folder, or null. */
export async function currentWriter(folder: string): Promise<Writer | null> {
  const held = await stat(lockFolder(folder)).catch(ifMissing(null));
  if (!held || held.mtimeMs < Date.now() - STALE_MS) return null;
  const writer = await readWriter(folder);
  return writer && !isDead(writer) ? writer : null;
}

function lockFolder(folder: string): string {
  return path.join(folder, '.lock');
}

/** Removes a lock at once, with the name in it. */
async function discard(folder: string): Promise<void> {
  const discarded = trashOf(folder);
  await rename(folder, discarded);
  await rm(discarded, { recursive: true, force: true });
}

/** A place from which the next writer removes what is left there. */
function trashOf(folder: string): string {
  return path.join(path.dirname(folder), 'trash', `lock.${randomUUID()}`);
}

/** Functions of files for a lock that comes with its writer's name and goes with it: a process may die at any moment. */
function namedLocks(writer: Writer): object {
  const create = async (folder: string): Promise<void> => {
    const draft = `${folder}.new`; // of the one process that acquires the lock
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
  return text === null ? null : (parseJson(text, null) as Writer | null); // null: another program's file, nobody's name
}

function lockedBy(what: string, writer: Writer | null, cause: unknown): OnpolicyError {
  const who = writer ? `process ${writer.pid} on ${writer.host}` : 'another process';
  return new OnpolicyError(
    'STORE_FAILED',
    `${who} writes to ${what}: this process can only read it, until that one is closed`,
    { cause },
  );
}
