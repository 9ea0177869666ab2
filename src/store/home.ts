/** The home folder: what lies where, who may write, and what was found damaged. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { flushFolder, replaceFile, storeFailed } from '../common/index.ts';
import { messageOf, OnpolicyError } from '../errors.ts';
import { currentWriter, lockForWriting, type WriterLock } from './writer-lock.ts';

/** Version of what lies in a home folder; a home of a newer version is left alone. */
export const FORMAT = 1;

/** Hears of files that are damaged and were skipped. */
export type ProblemListener = (problem: string) => void;

/** One home folder. Nothing is read before it is asked for, and nothing is made before the first write. */
export class Home {
  /** Absolute path. */
  readonly folder: string;
  /** Hear of what is damaged. Each file is reported once. */
  readonly listeners = new Set<ProblemListener>();
  readonly #finishDeletion: (trashed: string) => Promise<void>;
  readonly #reported = new Set<string>();
  #session = randomUUID();
  #lock: Promise<WriterLock> | null = null;

  /** `finishDeletion` does what a deletion has to do beyond removing the folder. */
  constructor(folder: string, finishDeletion: (trashed: string) => Promise<void>) {
    this.folder = path.resolve(folder);
    this.#finishDeletion = finishDeletion;
  }

  /** A path below the home folder. */
  path(...parts: readonly string[]): string {
    return path.join(this.folder, ...parts);
  }

  /** Marks what belongs to this process's time as the writer. */
  get session(): string {
    return this.#session;
  }

  /** Says, once, that a file is damaged and was skipped. */
  report(file: string, problem: unknown): void {
    const name = path.relative(this.folder, file);
    if (this.#reported.has(name)) return;
    this.#reported.add(name);
    for (const listener of this.listeners) listener(`${name} in ${this.folder}: ${messageOf(problem)}`);
  }

  /**
   * Makes this process the writer, if it is not: makes the folder, and finishes what a crash left half-done.
   * @throws OnpolicyError `STORE_FAILED` when another process writes, or the folder cannot be written to
   */
  async startWriting(): Promise<void> {
    this.#lock ??= this.#open();
    const opening = this.#lock;
    try {
      if ((await opening).isHeld()) return;
    } catch (error) {
      if (this.#lock === opening) this.#lock = null; // it may be tried again
      throw storeFailed(`cannot write to the home folder ${this.folder}`, error);
    }
    throw new OnpolicyError(
      'STORE_FAILED',
      `this process was not heard of for so long that another one has taken over the home folder ${this.folder}`,
    );
  }

  /** Whether a session's jobs may still run: it is the one that writes now. */
  async isWriting(session: string): Promise<boolean> {
    return session === this.#session || (await currentWriter(this.folder))?.session === session;
  }

  /** Takes a folder out of sight, at once and for good. What it holds is removed by {@link emptyTrash}. */
  async discard(folder: string, label: string): Promise<string> {
    const target = this.path('trash', `${label}.${randomUUID()}`);
    await fs.rename(folder, target);
    await flushFolder(path.dirname(folder));
    return target;
  }

  /** A fresh folder to make something in, before it is renamed to where it belongs. */
  async makeTemporary(): Promise<string> {
    const folder = this.path('trash', `new.${randomUUID()}`);
    await fs.mkdir(folder);
    return folder;
  }

  /** Removes a discarded folder, after what else its deletion has to do. */
  async removeDiscarded(folder: string): Promise<void> {
    await this.#finishDeletion(folder);
    await fs.rm(folder, { recursive: true, force: true });
  }

  /** Lets other processes write. */
  async close(): Promise<void> {
    const opening = this.#lock;
    this.#lock = null;
    this.#session = randomUUID();
    await opening?.then(
      (lock) => lock.release(),
      () => {}, // it was never taken
    );
  }

  async #open(): Promise<WriterLock> {
    await fs.mkdir(this.path('models'), { recursive: true });
    await fs.mkdir(this.path('trash'), { recursive: true });
    const lock = await lockForWriting(this.folder, this.#session);
    try {
      await this.#checkFormat();
      await this.#emptyTrash();
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  async #checkFormat(): Promise<void> {
    const file = this.path('store.json');
    const text = await fs.readFile(file, 'utf8').catch(ifMissing(null));
    if (text === null) return await replaceFile(file, `${JSON.stringify({ format: FORMAT })}\n`);
    const { format } = JSON.parse(text) as { format?: unknown };
    if (format !== FORMAT)
      throw new OnpolicyError(
        'STORE_FAILED',
        `the home folder ${this.folder} has format ${String(format)}; this version of onpolicy writes format ${FORMAT}`,
      );
  }

  async #emptyTrash(): Promise<void> {
    for (const name of await fs.readdir(this.path('trash')))
      await this.removeDiscarded(this.path('trash', name)).catch((error: unknown) =>
        this.report(this.path('trash', name), error),
      );
  }
}

/** Turns "no such file" into a value; other errors go on. */
export function ifMissing<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (isMissing(error)) return value;
    throw error;
  };
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as { code?: string }).code ?? '');
}

/**
 * Reads a JSON file of the current format. Null: it is not there, or it is damaged, which is reported.
 */
export async function readRecord<Value>(home: Home, file: string): Promise<Value | null> {
  try {
    const value = JSON.parse(await fs.readFile(file, 'utf8')) as Value & { format?: number };
    if (value.format !== FORMAT) throw new Error(`it has format ${String(value.format)}, expected ${FORMAT}`);
    return value;
  } catch (error) {
    if (!isMissing(error)) home.report(file, error);
    return null;
  }
}
