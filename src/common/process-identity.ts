/** A process -> its identity for others that share a folder with it, and if it has ended. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';

/** Identity of a process. Process ids alone may repeat across containers. */
export type ProcessIdentity = {
  readonly pid: number;
  readonly host: string;
  /** The namespace of process ids, on Linux. */
  readonly namespace: string | null;
};

/** Returns the identity of this process. */
export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, host: os.hostname(), namespace: processNamespace() };
}

/** Returns true if a process has certainly ended. */
export function isDead({ pid, host, namespace }: ProcessIdentity): boolean {
  return host === os.hostname() && namespace === processNamespace() && !isThere(pid);
}

/** Returns this process's identity as a word for file names. */
export function processWord(): string {
  return `${process.pid}-${placeWord()}`;
}

/**
 * Returns true if the process of such a word runs. Returns null if it belongs to another machine or container, or if the word is invalid.
 */
export function runsHere(word: string): boolean | null {
  const [pid, place] = word.split('-');
  return place === placeWord() ? isThere(Number(pid)) : null;
}

/** Returns a hash of machine and namespace. */
function placeWord(): string {
  const place = JSON.stringify([os.hostname(), processNamespace()]);
  return createHash('sha256').update(place).digest('hex').slice(0, 12);
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Returns true if a process has ended but its parent has not collected its status, as in a container without an init. Signals still reach
 * it.
 */
function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')); // its name is in parentheses and may contain any character
  } catch {
    return false; // not every system has it
  }
}

function processNamespace(): string | null {
  try {
    return fs.readlinkSync('/proc/self/ns/pid');
  } catch {
    return null; // not every system shows it
  }
}
