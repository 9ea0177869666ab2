/** A folder -> its files and batches, one store per folder in this process, and one process per folder. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { makeFolder, writing } from '../../../common/index.ts';
import { lockForWriting, type WriterLock } from '../../../common/writer-lock/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import { Batches } from './batches.ts';
import { Files } from './files.ts';
import type { Asker } from './records.ts';

export type { BatchClient, RowsFor } from './batches.ts';
export type { Asker } from './records.ts';

export class BatchStore {
  readonly files: Files;
  readonly batches: Batches;
  readonly #folder: string;
  readonly #lock: WriterLock;

  private constructor(folder: string, lock: WriterLock) {
    this.files = new Files(folder);
    this.batches = new Batches(folder, this.files);
    this.#folder = folder;
    this.#lock = lock;
  }

  /**
   * Opens the store of a folder. Callers in this process share it.
   * @throws OnpolicyError `STORE_FAILED` if another process has it open, or the folder is not writable
   */
  static open(folder: string): Promise<BatchStore> {
    const key = path.resolve(folder);
    const known = opened.get(key);
    if (known) return known;
    const opening = BatchStore.#open(key);
    opened.set(key, opening);
    opening.catch(() => opened.delete(key)); // the next call tries again
    return opening;
  }

  static async #open(folder: string): Promise<BatchStore> {
    await writing(folder, async () => {
      for (const name of ['files', 'batches']) await makeFolder(path.join(folder, name));
    });
    return new BatchStore(folder, await lockForWriting('the folder of batches', folder, randomUUID()));
  }

  /** Deletes a file. Throws if a batch still reads it. */
  async deleteFile(id: string, asker: Asker): Promise<void> {
    if (await this.batches.needs(id))
      throw new OnpolicyError('CONFLICT', `a batch that has not ended reads the file ${id}`, { param: 'id' });
    await this.files.delete(id, asker);
  }

  /** Stops the batches. The next process continues them. */
  async close(): Promise<void> {
    opened.delete(this.#folder);
    await this.batches.close();
    await this.#lock.release();
  }
}

const opened = new Map<string, Promise<BatchStore>>();
