/** Training jobs <-> files: status, result and events, also of processes that died. */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { appendLine, ifMissing, pageOf, replaceFile } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type {
  MetricValues,
  Page,
  TrainingJobEvent,
  TrainingJobInfo,
  ValidJobListQuery,
  ValidListQuery,
} from '../../protocol/index.ts';
import type { JobEvent } from '../index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { cursorPlace, isId, placedId } from './ids.ts';
import { readLines } from './jsonl.ts';
import type { ModelRecords } from './model-records.ts';

/** The end of a job, as its record has it. */
export type JobOutcome =
  | { readonly status: 'completed'; readonly step: number; readonly metrics: MetricValues }
  | { readonly status: 'failed'; readonly error: { readonly code: string; readonly message: string } }
  | { readonly status: 'cancelled' };

/** A job of this process. */
export type OpenJob = {
  /** A UUID. */
  readonly id: string;
  /** Folder for the job's own files. */
  readonly folder: string;
  /** Changes the status from `queued` to `running`. */
  start(): Promise<void>;
  /** Stores an event; returns it with its id and time. */
  append(event: JobEvent): Promise<TrainingJobEvent>;
  /** Stores the outcome. No event may follow. */
  finish(outcome: JobOutcome): Promise<TrainingJobInfo>;
};

type JobRecord = TrainingJobInfo & { readonly format: number; readonly session: string };

const ENDED = new Set(['completed', 'failed', 'cancelled']);
const INTERRUPTED = {
  code: 'ABORTED',
  message: 'the process that ran this job ended before the job did',
} as const;

/** Writes `jobs/<id>/job.json` and `events.jsonl` of a model. */
export class Jobs {
  readonly #home: Home;
  readonly #models: ModelRecords;
  readonly #folders = new Map<string, string>();

  constructor(home: Home, models: ModelRecords) {
    this.#home = home;
    this.#models = models;
  }

  /** A new job, `queued`. */
  async create(modelFolder: string, modelId: string): Promise<OpenJob> {
    const id = placedId(modelId, Date.now());
    const folder = path.join(modelFolder, 'jobs', id);
    let record: JobRecord = {
      format: FORMAT,
      id,
      object: 'training.job',
      model_id: modelId,
      status: 'queued',
      created: now(),
      step: null,
      metrics: {},
      error: null,
      session: this.#home.session,
    };
    const save = (changes: Partial<JobRecord>) => {
      record = { ...record, ...changes };
      return saveRecord(folder, record);
    };
    await this.#home.publish(folder, (temporary) => saveRecord(temporary, record));
    this.#folders.set(id, folder);
    const events = path.join(folder, 'events.jsonl');
    let eventCount = 0;
    let last: Promise<unknown> = Promise.resolve(); // events are written in the order of the calls
    const append = (event: JobEvent): Promise<TrainingJobEvent> => {
      const kept: TrainingJobEvent = { id: placedId(id, eventCount++), created: now(), ...event };
      const isLast = event.type === 'training_ended' || event.type === 'training_failed';
      const written = last.then(() => appendLine(events, kept, { flush: isLast }));
      last = written.catch(() => {}); // the caller gets the error
      return written.then(() => kept);
    };
    return {
      id,
      folder,
      append,
      start: () => save({ status: 'running' }),
      finish: async (outcome) => {
        await last;
        await save(outcome);
        return toInfo(record);
      },
    };
  }

  /** A job of any process. A job whose process has died is `failed`. @throws OnpolicyError `NOT_FOUND` */
  async read(id: string): Promise<TrainingJobInfo> {
    const job = await this.#read(await this.#find(id));
    if (job) return job;
    throw new OnpolicyError('NOT_FOUND', `there is no training job ${JSON.stringify(id)}`);
  }

  async #read(folder: string | null): Promise<TrainingJobInfo | null> {
    const record = folder ? await readRecord<JobRecord>(this.#home, path.join(folder, 'job.json')) : null;
    if (!record) return null;
    if (ENDED.has(record.status) || (await this.#home.isWriting(record.session))) return toInfo(record);
    return toInfo({ ...record, status: 'failed', error: INTERRUPTED });
  }

  /** A page of the jobs of one model or all, by the time of their creation. @throws OnpolicyError `MODEL_NOT_FOUND` */
  async list({ model_id, after, limit, order, status }: ValidJobListQuery): Promise<Page<TrainingJobInfo>> {
    const models = model_id === null ? await this.#models.all() : [await this.#models.require(model_id)];
    const folders = new Map<string, string>(); // by id
    for (const model of models) {
      const jobs = path.join(this.#models.folder(model.id), 'jobs');
      for (const id of await fs.readdir(jobs).catch(ifMissing([] as string[])))
        if (isId(id)) folders.set(id, path.join(jobs, id));
    }
    const ids = [...folders.keys()].sort(); // they begin with their time
    return await pageOf(ids, { after: after?.toLowerCase() ?? null, limit, order }, async (id) => {
      const job = await this.#read(folders.get(id)!);
      return job && (status === null || job.status === status) ? job : null;
    });
  }

  /** A page of a job's events, in the order they happened. @throws OnpolicyError `NOT_FOUND` */
  async events(id: string, query: Pick<ValidListQuery, 'after' | 'limit'>): Promise<Page<TrainingJobEvent>> {
    const info = await this.read(id);
    const folder = this.#folders.get(id.toLowerCase())!; // where it was read
    const from = query.after === null ? 0 : cursorPlace(id, query.after) + 1;
    const found: TrainingJobEvent[] = [];
    let place = 0;
    let hasEnd = false;
    for await (const event of readLines<TrainingJobEvent>(this.#home, path.join(folder, 'events.jsonl'))) {
      place = cursorPlace(id, event.id);
      hasEnd ||= event.type === 'training_failed' || event.type === 'training_ended';
      if (place >= from) found.push(event);
      if (found.length > query.limit) break;
    }
    // Adds the event that a dead process could not write.
    if (found.length <= query.limit && !hasEnd && info.error && place + 1 >= from)
      found.push({ id: endId(id, place + 1), created: info.created, type: 'training_failed', ...info.error });
    const places = [...found.keys()];
    return await pageOf(places, { after: null, limit: query.limit, order: 'asc' }, async (i) => found[i]!);
  }

  async #find(given: string): Promise<string | null> {
    if (!isId(given)) return null;
    const id = given.toLowerCase();
    const models = await this.#models.all();
    const candidates = models.map((model) => path.join(this.#models.folder(model.id), 'jobs', id));
    for (const folder of [this.#folders.get(id) ?? [], ...candidates].flat())
      if (await fs.stat(folder).catch(ifMissing(null))) {
        this.#folders.set(id, folder);
        return folder;
      }
    return null;
  }
}

/** The id of an event that was never written, the same on every call. */
function endId(jobId: string, place: number): string {
  return placedId(jobId, place, createHash('sha256').update(jobId).digest());
}

function toInfo(record: JobRecord): TrainingJobInfo {
  const { format: _format, session: _session, ...info } = record;
  return info;
}

async function saveRecord(folder: string, record: JobRecord): Promise<void> {
  await replaceFile(path.join(folder, 'job.json'), `${JSON.stringify(record, null, 2)}\n`);
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
