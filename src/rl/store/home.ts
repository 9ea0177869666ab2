/** A folder -> the home folder: its paths, its one writer, deletion by renaming, and reports of damaged files. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import {
  flushFolder,
  makeFolder,
  publishFolder,
  readText,
  rename,
  replaceFile,
  storeFailed,
} from '../../common/index.ts';
import { currentWriter, lockForWriting, type WriterLock } from '../../common/writer-lock/index.ts';
import { messageOf, OnpolicyError } from '../../errors.ts';

/** Version of the file format. A home of another version is not written to. */
export const FORMAT = 1;

/** Called with a description of a damaged file that was skipped. */
export type ProblemListener = (problem: string) => void;

/** One home folder. The constructor does not touch the disk; the first write creates the folder. */
export class Home {
  /** Absolute path. */
  readonly folder: string;
  /** Called once for each damaged file. */
  readonly listeners = new Set<ProblemListener>();
  readonly #finishDeletion: (trashed: string) => Promise<void>;
  readonly #reported = new Set<string>();
  #session = randomUUID();
  #lock: Promise<WriterLock> | null = null;

  /** `finishDeletion` runs before a discarded folder is removed. */
  constructor(folder: string, finishDeletion: (trashed: string) => Promise<void>) {
    this.folder = path.resolve(folder);
    this.#finishDeletion = finishDeletion;
  }

  /** A path below the home folder. */
  path(...parts: readonly string[]): string {
    return path.join(this.folder, ...parts);
  }

  /** Identifies the time of this process as the writer. */
  get session(): string {
    return this.#session;
  }

  /** Reports a damaged file that was skipped. Each file is reported once. */
  report(file: string, problem: unknown): void {
    const name = path.relative(this.folder, file);
    if (this.#reported.has(name)) return;
    this.#reported.add(name);
    for (const listener of this.listeners) listener(`${name} in ${this.folder}: ${messageOf(problem)}`);
  }

  /**
   * Makes this process the writer unless it is: creates the folder and finishes deletions that a crash interrupted.
   * @throws OnpolicyError `STORE_FAILED` if another process is the writer, or the folder is not writable
   */
  async startWriting(): Promise<void> {
    this.#lock ??= this.#open();
    const opening = this.#lock;
    try {
      if ((await opening).isHeld()) return;
    } catch (error) {
      if (this.#lock === opening) this.#lock = null; // the next call tries again
      throw storeFailed(`cannot write to the home folder ${this.folder}`, error);
    }
    throw new OnpolicyError(
      'STORE_FAILED',
      `this process was silent for so long that another one has taken over the home folder ${this.folder}`,
    );
  }

  /** Returns true if the session is the current writer, so that its jobs may still run. */
  async isWriting(session: string): Promise<boolean> {
    return session === this.#session || (await currentWriter(this.folder))?.session === session;
  }

  /** Moves a folder to the trash, atomically. {@link removeDiscarded} removes it. */
  async discard(folder: string, label: string): Promise<string> {
    const target = this.path('trash', `${label}.${randomUUID()}`);
    await rename(folder, target);
    await flushFolder(path.dirname(folder));
    return target;
  }

  /** Publishes a folder that `write` fills in the trash, so that a crash leaves nothing at the target. */
  async publish(target: string, write: (folder: string) => Promise<void>): Promise<void> {
    await publishFolder({ target, temporary: this.path('trash', `new.${randomUUID()}`) }, async (folder) => {
      await fs.mkdir(folder);
      await write(folder);
    });
  }

  /** Runs `finishDeletion`, then removes a discarded folder. */
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
      () => {}, // the lock was not acquired
    );
  }

  async #open(): Promise<WriterLock> {
    await makeFolder(this.path('models'));
    const lock = await lockForWriting('the home folder', this.folder, this.#session);
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
    const text = await readText(file);
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

/**
 * Reads a JSON file of the current format. Returns null if it is missing or damaged; damage is reported.
 * @param isNeeded true if damage is an error, as for a file that will be rewritten
 * @throws OnpolicyError `STORE_FAILED` if it cannot be read
 */
export async function readRecord<Value>(home: Home, file: string, isNeeded = false): Promise<Value | null> {
  const text = await readText(file);
  if (text === null) return null;
  try {
    const value = JSON.parse(text) as Value & { format?: number };
    if (value.format !== FORMAT) throw new Error(`it has format ${String(value.format)}, expected ${FORMAT}`);
    return value;
  } catch (error) {
    if (isNeeded) throw storeFailed(`${file} is damaged`, error);
    home.report(file, error);
    return null;
  }
}
