/** A folder -> what was read of it, and read again only when the folder has changed. Other processes may change it. */
import fs from 'node:fs/promises';
import { ifMissing } from '../../common/index.ts';

/**
 * File systems store modification times with a resolution of two seconds at worst. If a folder changed within this time, further changes
 * may be invisible.
 */
const SETTLED_MS = 2000;

/** Contents of a folder's names. `read` reads them; it is not called for a folder that does not exist. */
export class Unchanged<Value> {
  readonly #read: () => Promise<Value>;
  #known: { readonly changed: bigint; readonly value: Value } | null = null;

  constructor(read: () => Promise<Value>) {
    this.#read = read;
  }

  /** Returns the contents of `folder`, or null if it does not exist. */
  async get(folder: string): Promise<Value | null> {
    const facts = await fs.stat(folder, { bigint: true }).catch(ifMissing(null));
    if (!facts) return null;
    const { mtimeNs: changed, mtimeMs } = facts;
    if (this.#known?.changed === changed) return this.#known.value;
    const value = await this.#read();
    this.#known = Date.now() - Number(mtimeMs) > SETTLED_MS ? { changed, value } : null;
    return value;
  }
}
