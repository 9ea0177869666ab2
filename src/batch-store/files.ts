/** Bytes of clients and answers of batches <-> files on disk with their records. */
import { createReadStream, createWriteStream } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ifMissing, writing } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import type { FileObject, Page, ValidListQuery } from '../protocol/index.ts';
import { type Asker, type Owned, Records } from './records.ts';

/** Where a file comes from. */
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

  /** Where the bytes of a file are. */
  dataOf(id: string): string {
    return this.#records.path(id, 'data');
  }

  /**
   * Writes a stream to a file that nobody sees yet.
   * @throws OnpolicyError `TOO_LARGE`, `STORE_FAILED`; nothing is left then
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
    try {
      await writing(file, () => pipeline(limited(), createWriteStream(file, { flags: 'wx', flush: true })));
    } catch (error) {
      await fs.rm(file, { force: true });
      throw error;
    }
    return id;
  }

  /** Makes a record for bytes that are there. */
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

  /** The bytes of a file, some at a time. */
  async content(id: string, asker: Asker): Promise<AsyncIterable<Uint8Array>> {
    await this.#records.get(id, asker);
    return createReadStream(this.dataOf(id), { highWaterMark: 256 * 1024 });
  }

  async delete(id: string, asker: Asker): Promise<void> {
    await this.#records.get(id, asker);
    await this.#records.remove(id);
    await this.drop(id);
  }

  /** Removes bytes without a record. */
  async drop(id: string): Promise<void> {
    await fs.rm(this.dataOf(id), { force: true });
  }

  /** Removes what a batch needed to continue with this output. */
  async dropJournal(id: string): Promise<void> {
    await fs.rm(`${this.dataOf(id)}.journal`, { recursive: true, force: true });
  }

  /** Whether a file has bytes. */
  async hasData(id: string): Promise<boolean> {
    const found = await fs.stat(this.dataOf(id)).catch(ifMissing(null));
    return found !== null && found.size > 0;
  }
}

function shown({ owner: _, ...file }: FileObject & Owned): FileObject {
  return file;
}
