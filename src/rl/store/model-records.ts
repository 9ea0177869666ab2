/** A home folder -> its models: registered and found. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing, writeFlushed } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { FolderContents } from './folder-contents.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { isId, placedId, placeOf } from './ids.ts';
import { newRunRecord } from './run-record.ts';

/** Scope of the ids of models. */
export const MODELS = 'models';

/** Content of `model.json`; it never changes. */
export type ModelRecord = {
  readonly format: number;
  readonly id: string;
  readonly name: string | null;
  readonly base_model: string;
  /** Seconds since 1970. */
  readonly created: number;
};

/** Reads and writes `models/<id>/model.json`. Other processes may write: the folder is read again when it has changed. */
export class ModelRecords {
  readonly #home: Home;
  readonly #named: FolderContents<ReadonlyMap<string, ModelRecord>>;
  readonly #known = new Map<string, ModelRecord>();

  constructor(home: Home) {
    this.#home = home;
    this.#named = new FolderContents(home.path('models'), () => this.#byName());
  }

  folder(id: string): string {
    return this.#home.path('models', id);
  }

  /** Every readable model, oldest first. */
  async all(): Promise<ModelRecord[]> {
    const names = await fs.readdir(this.#home.path('models')).catch(ifMissing([] as string[]));
    const ids = new Set(names.filter((name) => placeOf(MODELS, name) !== null));
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
    const records = await Promise.all([...ids].map((id) => this.read(id)));
    return records
      .filter((record) => record !== null)
      .sort((a, b) => placeOf(MODELS, a.id)! - placeOf(MODELS, b.id)!);
  }

  /** The oldest model of this name; null if there is none. Requests ask for it, so an unchanged folder is not read. */
  async named(name: string): Promise<ModelRecord | null> {
    return (await this.#named.get())?.get(name) ?? null;
  }

  async #byName(): Promise<ReadonlyMap<string, ModelRecord>> {
    const records = new Map<string, ModelRecord>();
    for (const record of await this.all())
      if (record.name !== null && !records.has(record.name)) records.set(record.name, record);
    return records;
  }

  /** One model; null if unknown. */
  async get(id: string): Promise<ModelRecord | null> {
    const known = isId(id) ? id.toLowerCase() : null;
    if (known === null) return null;
    const isThere = await fs.stat(this.folder(known)).catch(ifMissing(null));
    if (isThere) return await this.read(known);
    this.#known.delete(known);
    return null;
  }

  /** One model. @throws OnpolicyError `MODEL_NOT_FOUND` */
  async require(id: string): Promise<ModelRecord> {
    const record = await this.get(id);
    if (!record) throw noModel(id);
    return record;
  }

  /** Registers a model. Only one call at a time. */
  async add(given: Pick<ModelRecord, 'name' | 'base_model'>): Promise<ModelRecord> {
    const newest = (await this.all()).at(-1);
    const place = Math.max(Date.now(), (newest ? placeOf(MODELS, newest.id)! : 0) + 1);
    const created = Math.floor(Date.now() / 1000);
    const record: ModelRecord = { format: FORMAT, id: placedId(MODELS, place), ...given, created };
    await this.#home.publish(this.folder(record.id), async (folder) => {
      await writeFlushed(path.join(folder, 'model.json'), [`${JSON.stringify(record, null, 2)}\n`]);
      await writeFlushed(path.join(folder, 'run.json'), [`${JSON.stringify(newRunRecord(), null, 2)}\n`]);
    });
    this.#known.set(record.id, record);
    return record;
  }

  async read(id: string): Promise<ModelRecord | null> {
    const known = this.#known.get(id);
    if (known) return known;
    const record = await readRecord<ModelRecord>(this.#home, path.join(this.folder(id), 'model.json'));
    if (record) this.#known.set(id, record);
    return record;
  }
}

/** Returns the error for an unknown model. */
export function noModel(id: string): OnpolicyError {
  return new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${JSON.stringify(id)}`, {
    param: 'model_id',
  });
}
