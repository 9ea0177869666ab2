/** A folder -> its contents, which are read again only when the folder has changed. Other processes may change it. */
import fs from 'node:fs/promises';
import { ifMissing } from '../../common/index.ts';

/**
 * File systems store modification times with a resolution of two seconds at worst. If a folder changed within this time, further changes
 * may be invisible.
 */
const SETTLED_MS = 2000;

/** Contents of a folder, as `read` returns them. It is not called for a folder that does not exist. */
export class FolderContents<Value> {
  readonly #folder: string;
  readonly #read: (folder: string) => Promise<Value>;
  #known: { readonly changed: bigint; readonly value: Value } | null = null;

  constructor(folder: string, read: (folder: string) => Promise<Value>) {
    this.#folder = folder;
    this.#read = read;
  }

  /** Returns the contents, or null if the folder does not exist. */
  async get(): Promise<Value | null> {
    const facts = await fs.stat(this.#folder, { bigint: true }).catch(ifMissing(null));
    if (!facts) return null;
    const { mtimeNs: changed, mtimeMs } = facts;
    if (this.#known?.changed === changed) return this.#known.value;
    const value = await this.#read(this.#folder);
    this.#known = Date.now() - Number(mtimeMs) > SETTLED_MS ? { changed, value } : null;
    return value;
  }
}
