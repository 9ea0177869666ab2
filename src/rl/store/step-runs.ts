/** A model's folder -> the training runs of it whose steps a client sends, and their saved states. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { flushFolder, ifMissing, makeFolder, replaceFile } from '../../common/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { isId } from './ids.ts';

/** A saved state of a run. */
export type StepRunState = {
  readonly name: string;
  /** Name of its folder, in the run's folder. */
  readonly folder: string;
  /** Number of the client's last step that it includes. */
  readonly sequence: number;
};

/** Content of a run's `run.json`. Replacing this file commits a saved state. */
export type StepRunRecord = {
  readonly format: number;
  readonly id: string;
  readonly model_id: string;
  readonly base_model: string;
  readonly rank: number;
  readonly alpha: number;
  /** Other fields of its adapter's shape. Absent in runs that an earlier version wrote. */
  readonly adapter?: { readonly rslora: boolean; readonly modules: readonly string[] };
  readonly seed: number;
  readonly created: number;
  /** The base model's file when the run was opened. */
  readonly base: { readonly bytes: number; readonly modified: number };
  /** Oldest first. */
  readonly states: readonly StepRunState[];
};

/** Reads and writes `models/<id>/training-runs/<run>`. Only the writer of the home folder writes. */
export class StepRuns {
  readonly #home: Home;

  constructor(home: Home) {
    this.#home = home;
  }

  folder(modelId: string, id: string): string {
    return this.#home.path('models', modelId, 'training-runs', id);
  }

  /** The folder of a state. */
  stateFolder({ model_id, id }: StepRunRecord, state: StepRunState): string {
    return path.join(this.folder(model_id, id), state.folder);
  }

  /** Every readable run of some models, oldest first. */
  async all(modelIds: readonly string[]): Promise<StepRunRecord[]> {
    const found: StepRunRecord[] = [];
    for (const modelId of modelIds) {
      const names = await fs
        .readdir(path.dirname(this.folder(modelId, 'x')))
        .catch(ifMissing([] as string[]));
      for (const name of names.filter(isId)) {
        const record = await readRecord<StepRunRecord>(this.#home, this.#file(modelId, name));
        if (record) found.push(record);
      }
    }
    return found.sort((a, b) => a.created - b.created);
  }

  /** Adds a run without states. */
  async add(given: Omit<StepRunRecord, 'format' | 'id' | 'created' | 'states'>): Promise<StepRunRecord> {
    const created = Math.floor(Date.now() / 1000);
    const record: StepRunRecord = { format: FORMAT, id: randomUUID(), created, ...given, states: [] };
    await makeFolder(this.folder(record.model_id, record.id));
    await this.#write(record);
    return record;
  }

  /** Writes a state: its files first, then the record that names it. A crash leaves the earlier states. */
  async save(
    record: StepRunRecord,
    { name, sequence }: Pick<StepRunState, 'name' | 'sequence'>,
    write: (folder: string) => Promise<void>,
  ): Promise<StepRunRecord> {
    const folder = this.folder(record.model_id, record.id);
    const state = { name, folder: `state-${randomUUID()}`, sequence };
    const states = [...record.states.filter((other) => other.name !== name), state];
    const next = { ...record, states };
    try {
      await write(path.join(folder, state.folder));
      await flushFolder(path.join(folder, state.folder));
      await this.#write(next);
    } finally {
      await this.#clean(record);
    }
    return next;
  }

  /** Moves a run to the trash. */
  async discard({ model_id, id }: StepRunRecord): Promise<string> {
    return await this.#home.discard(this.folder(model_id, id), `run-${id}`);
  }

  /** Removes states that are in no record. */
  async #clean({ model_id, id }: StepRunRecord): Promise<void> {
    const folder = this.folder(model_id, id);
    const record = await readRecord<StepRunRecord>(this.#home, this.#file(model_id, id));
    if (!record) return;
    const named = new Set(record.states.map((state) => state.folder));
    for (const name of await fs.readdir(folder))
      if (name.startsWith('state-') && !named.has(name))
        await fs.rm(path.join(folder, name), { recursive: true, force: true });
  }

  async #write(record: StepRunRecord): Promise<void> {
    await replaceFile(this.#file(record.model_id, record.id), `${JSON.stringify(record, null, 2)}\n`);
  }

  #file(modelId: string, id: string): string {
    return path.join(this.folder(modelId, id), 'run.json');
  }
}
