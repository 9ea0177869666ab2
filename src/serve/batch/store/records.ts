/** Records with ids <-> a folder of JSON files, listed by age. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing, pageOf, parseJson, readText, replaceFile } from '../../../common/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import type { Page, ValidListQuery } from '../../../protocol/index.ts';

/** The field that every record has. */
export type Owned = {
  /** Key of the client that created the record. */
  readonly owner: string;
};

/** Requester of a record. Admins see all records, others only their own. */
export type Asker = { readonly owner: string; readonly isAdmin: boolean };

export class Records<Value extends { readonly id: string }> {
  readonly folder: string;
  readonly #prefix: string;

  constructor(folder: string, prefix: string) {
    this.folder = folder;
    this.#prefix = prefix;
  }

  /** Returns a new id that sorts behind all earlier ones. */
  newId(): string {
    return `${this.#prefix}${Date.now().toString(16).padStart(12, '0')}${randomBytes(10).toString('hex')}`;
  }

  path(id: string, ending: string): string {
    return path.join(this.folder, `${id}.${ending}`);
  }

  async put(value: Value & Owned): Promise<void> {
    await replaceFile(this.path(value.id, 'json'), JSON.stringify(value));
  }

  /** Returns a record. @throws OnpolicyError `NOT_FOUND`, also for a record of another owner */
  async get(id: string, asker: Asker): Promise<Value & Owned> {
    const found = this.#isId(id) ? await this.#read(id) : null;
    if (!found || !maySee(found, asker))
      throw new OnpolicyError('NOT_FOUND', `there is no ${id.slice(0, 100)}`, { param: 'id' });
    return found;
  }

  async remove(id: string): Promise<void> {
    await fs.rm(this.path(id, 'json'), { force: true });
  }

  /** Returns all ids, oldest first. */
  async ids(): Promise<string[]> {
    const names = await fs.readdir(this.folder).catch(ifMissing<string[]>([]));
    return names
      .filter((name) => name.endsWith('.json'))
      .map((name) => name.slice(0, -'.json'.length))
      .filter((id) => this.#isId(id))
      .sort();
  }

  /** Returns a page of the records that the asker may see. `after` need not exist any more. */
  async list(query: ValidListQuery, asker: Asker): Promise<Page<Value & Owned>> {
    return await pageOf(await this.ids(), query, async (id) => {
      const value = await this.#read(id);
      return value && maySee(value, asker) ? value : null;
    });
  }

  /** Returns null if the record does not exist or is damaged. */
  async #read(id: string): Promise<(Value & Owned) | null> {
    const text = await readText(this.path(id, 'json'));
    return text === null ? null : (parseJson(text, null) as (Value & Owned) | null);
  }

  #isId(text: string): boolean {
    return text.startsWith(this.#prefix) && /^[0-9a-f]{32}$/.test(text.slice(this.#prefix.length));
  }
}

function maySee(value: Owned, { owner, isAdmin }: Asker): boolean {
  return isAdmin || value.owner === owner;
}
