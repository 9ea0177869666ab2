/** A process -> who it is, for others that share a folder with it, and whether it has ended. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';

/** Who a process is. Several containers may each have a process of one number. */
export type ProcessIdentity = {
  readonly pid: number;
  readonly host: string;
  /** The namespace of process ids, on Linux. */
  readonly namespace: string | null;
};

/** This process. */
export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, host: os.hostname(), namespace: processNamespace() };
}

/** Whether a process has certainly ended. */
export function isDead({ pid, host, namespace }: ProcessIdentity): boolean {
  return host === os.hostname() && namespace === processNamespace() && !isThere(pid);
}

/** This process, as a word in a file's name. */
export function processWord(): string {
  return `${process.pid}-${placeWord()}`;
}

/** Whether the process of such a word runs; null: it is one of another machine or container, or the word is none. */
export function runsHere(word: string): boolean | null {
  const [pid, place] = word.split('-');
  return place === placeWord() ? isThere(Number(pid)) : null;
}

/** Machine and namespace. */
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

/** Whether a process has ended and its parent has not asked how, as in a container without an init: it answers signals, too. */
function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')); // its name, in parentheses, may hold anything
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
