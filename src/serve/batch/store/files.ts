/** Bytes of clients and answers of batches <-> files on disk with their records. */
import { createReadStream, createWriteStream } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ifMissing, writing } from '../../../common/index.ts';
import { errorAt } from '../../../errors.ts';
import type { FileObject, Page, ValidListQuery } from '../../../protocol/index.ts';
import { type Asker, type Owned, Records } from './records.ts';

/** Owner, name and purpose of a new file. */
export type Upload = {
  readonly owner: string;
  readonly filename: string;
  readonly purpose: string;
};

export class Files {
  readonly #records: Records<FileObject>;

  constructor(folder: string) {
    this.#records = new Records(path.join(folder, 'files'), 'file-');
  }

  newId(): string {
    return this.#records.newId();
  }

  /** Returns the path of a file's bytes. */
  dataOf(id: string): string {
    return this.#records.path(id, 'data');
  }

  /**
   * Writes a stream to a file that has no record yet, so that no client sees it.
   * @throws OnpolicyError `TOO_LARGE`, `STORE_FAILED`; the partial file is deleted
   */
  async receive(parts: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
    const id = this.newId();
    const file = this.dataOf(id);
    async function* limited(): AsyncGenerator<Uint8Array> {
      let bytes = 0;
      for await (const part of parts) {
        bytes += part.length;
        if (bytes > maxBytes) throw errorAt('file', 'TOO_LARGE', `expected at most ${maxBytes} bytes`);
        yield part;
      }
    }
    const out = createWriteStream(file, { flags: 'wx', flush: true });
    const closed = new Promise<void>((resolve) => out.once('close', () => resolve()));
    try {
      await writing(file, () => pipeline(limited(), out));
    } catch (error) {
      await closed; // a file that is still being opened would be created after its deletion
      await fs.rm(file, { force: true });
      throw error;
    }
    return id;
  }

  /** Creates the record of a file whose bytes are on the disk. */
  async publish(id: string, { owner, ...upload }: Upload): Promise<FileObject> {
    const { size: bytes } = await fs.stat(this.dataOf(id));
    const created_at = Math.floor(Date.now() / 1000);
    const file = { id, object: 'file', bytes, created_at, ...upload, status: 'processed' } as const;
    await this.#records.put({ ...file, owner });
    return file;
  }

  async retrieve(id: string, asker: Asker): Promise<FileObject> {
    return shown(await this.#records.get(id, asker));
  }

  async list(query: ValidListQuery, asker: Asker): Promise<Page<FileObject>> {
    const page = await this.#records.list(query, asker);
    return { ...page, data: page.data.map(shown) };
  }

  /** Returns the bytes of a file in chunks. */
  async content(id: string, asker: Asker): Promise<AsyncIterable<Uint8Array>> {
    await this.#records.get(id, asker);
    return createReadStream(this.dataOf(id), { highWaterMark: 256 * 1024 });
  }

  async delete(id: string, asker: Asker): Promise<void> {
    await this.#records.get(id, asker);
    await this.#records.remove(id);
    await this.drop(id);
  }

  /** Deletes the bytes of a file that has no record. */
  async drop(id: string): Promise<void> {
    await fs.rm(this.dataOf(id), { force: true });
  }

  /** Deletes the journal that a batch used to resume this output. */
  async dropJournal(id: string): Promise<void> {
    await fs.rm(`${this.dataOf(id)}.journal`, { recursive: true, force: true });
  }

  /** Returns true if the bytes of a file are on the disk. */
  async hasData(id: string): Promise<boolean> {
    const found = await fs.stat(this.dataOf(id)).catch(ifMissing(null));
    return found !== null && found.size > 0;
  }
}

function shown({ owner: _, ...file }: FileObject & Owned): FileObject {
  return file;
}
