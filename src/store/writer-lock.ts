/** One process at a time writes to a home folder. A writer that died is noticed and gives way at once. */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { lock } from 'proper-lockfile';
import { replaceFile } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

/** A writer on another machine that has not been heard of for so long is taken for dead. */
const STALE_MS = 15_000;
const UPDATE_MS = 3_000;
/** The door is held for milliseconds only. */
const DOOR = { stale: 2_000, retries: { retries: 60, minTimeout: 50, maxTimeout: 100, factor: 1 } };

/** Who writes. */
export type Writer = {
  /** Names this hold of the lock; jobs that run are marked with it. */
  readonly session: string;
  readonly pid: number;
  readonly host: string;
  /** On Linux: process ids mean nothing in another namespace. */
  readonly namespace: string | null;
  /** Seconds since 1970. */
  readonly since: number;
};

/** A hold of the lock. */
export type WriterLock = {
  /** False: another process has taken the lock over, as this one was not heard of for too long. */
  readonly isHeld: () => boolean;
  release(): Promise<void>;
};

/**
 * Takes the lock of a home folder for this process.
 * @throws OnpolicyError `STORE_FAILED` when another process holds it
 */
export async function lockForWriting(home: string, session: string): Promise<WriterLock> {
  const main = lockFolder(home);
  // Finding a dead writer and replacing it is one act: two processes must not both replace it.
  const leave = await lock(home, {
    ...DOOR,
    realpath: false,
    lockfilePath: path.join(home, '.door'),
    onCompromised: () => {}, // no harm: the second lock decides
  });
  try {
    const writer = await readWriter(home);
    if (writer && (await isDead(writer))) await fs.rmdir(main).catch(() => {}); // it may have gone by itself
    let isHeld = true;
    const release = await lock(main, {
      realpath: false,
      lockfilePath: main,
      stale: STALE_MS,
      update: UPDATE_MS,
      onCompromised: () => {
        isHeld = false;
      },
    }).catch((cause: unknown) => {
      if ((cause as { code?: string }).code === 'ELOCKED') throw lockedBy(home, writer, cause);
      throw cause;
    });
    await writeWriter(home, session);
    return {
      isHeld: () => isHeld,
      release: async () => {
        if (isHeld) await release();
        isHeld = false;
      },
    };
  } finally {
    await leave().catch(() => {}); // compromised: someone else has it
  }
}

/** Who writes to the home folder now; null: no one. */
export async function currentWriter(home: string): Promise<Writer | null> {
  const held = await fs.stat(lockFolder(home)).catch(() => null);
  if (!held || held.mtimeMs < Date.now() - STALE_MS) return null;
  const writer = await readWriter(home);
  return writer && !(await isDead(writer)) ? writer : null;
}

function lockFolder(home: string): string {
  return path.join(home, '.lock');
}

async function readWriter(home: string): Promise<Writer | null> {
  return await fs.readFile(path.join(home, 'writer.json'), 'utf8').then(
    (text) => JSON.parse(text) as Writer,
    () => null,
  );
}

async function writeWriter(home: string, session: string): Promise<void> {
  const writer: Writer = {
    session,
    pid: process.pid,
    host: os.hostname(),
    namespace: await processNamespace(),
    since: Math.floor(Date.now() / 1000),
  };
  await replaceFile(path.join(home, 'writer.json'), `${JSON.stringify(writer)}\n`);
}

/** Whether the writer is known not to run any more. */
async function isDead({ pid, host, namespace }: Writer): Promise<boolean> {
  if (host !== os.hostname() || namespace !== (await processNamespace())) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as { code?: string }).code === 'ESRCH';
  }
}

async function processNamespace(): Promise<string | null> {
  return await fs.readlink('/proc/self/ns/pid').catch(() => null);
}

function lockedBy(home: string, writer: Writer | null, cause: unknown): OnpolicyError {
  const who = writer ? `process ${writer.pid} on ${writer.host}` : 'another process';
  return new OnpolicyError(
    'STORE_FAILED',
    `${who} writes to the home folder ${home}: this process can only read it, until that one is closed`,
    { cause },
  );
}
