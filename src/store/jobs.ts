/** Training jobs <-> files: status, result and events, also of processes that died. */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { flushFolder, ifMissing, makeFolder, rename, replaceFile } from '../common/index.ts';
import type {
  MetricValues,
  Page,
  TrainingJobEvent,
  TrainingJobInfo,
  ValidJobListQuery,
  ValidListQuery,
} from '../protocol/index.ts';
import type { JobEvent } from '../rl/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { isId, placedId } from './ids.ts';
import { appendLine, readLines } from './jsonl.ts';
import { cursorPlace, readPage } from './page.ts';

/** How a job ended. */
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
  readonly #folders = new Map<string, string>();

  constructor(home: Home) {
    this.#home = home;
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
    const temporary = await this.#home.makeTemporary(); // a crash here leaves no job
    await saveRecord(temporary, record);
    await makeFolder(path.dirname(folder));
    await rename(temporary, folder);
    await flushFolder(path.dirname(folder));
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

  /** A job of any process; null if unknown. A job whose process has died is `failed`. */
  async read(id: string, modelFolders: readonly string[]): Promise<TrainingJobInfo | null> {
    const folder = await this.#find(id, modelFolders);
    const record = folder ? await readRecord<JobRecord>(this.#home, path.join(folder, 'job.json')) : null;
    if (!record) return null;
    if (ENDED.has(record.status) || (await this.#home.isWriting(record.session))) return toInfo(record);
    return toInfo({ ...record, status: 'failed', error: INTERRUPTED });
  }

  /** A page of the jobs in these folders of models, by the time of their creation. */
  async list(
    { after, limit, order, status }: ValidJobListQuery,
    modelFolders: readonly string[],
  ): Promise<Page<TrainingJobInfo>> {
    const ids: string[] = [];
    for (const folder of modelFolders) {
      const names = await fs.readdir(path.join(folder, 'jobs')).catch(ifMissing([] as string[]));
      ids.push(...names.filter(isId));
    }
    ids.sort(); // they begin with their time
    if (order === 'desc') ids.reverse();
    const found: TrainingJobInfo[] = [];
    const cursor = after?.toLowerCase() ?? null;
    for (const id of ids) {
      const isBehind = cursor === null || (order === 'asc' ? id > cursor : id < cursor);
      const job = isBehind ? await this.read(id, modelFolders) : null;
      if (job && (status === null || job.status === status)) found.push(job);
      if (found.length > limit) break;
    }
    const data = found.slice(0, limit);
    const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
    return { object: 'list', data, has_more: found.length > limit, first_id, last_id };
  }

  /** A page of a job's events, in the order they happened. */
  async events(
    id: string,
    query: Pick<ValidListQuery, 'after' | 'limit'>,
    modelFolders: readonly string[],
  ): Promise<Page<TrainingJobEvent> | null> {
    const info = await this.read(id, modelFolders);
    const folder = await this.#find(id, modelFolders);
    if (!info || !folder) return null;
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
    // The event that a dead process could not write.
    if (found.length <= query.limit && !hasEnd && info.error && place + 1 >= from)
      found.push({ id: endId(id, place + 1), created: info.created, type: 'training_failed', ...info.error });
    const places = found.map((_, i) => i);
    return await readPage(
      id,
      places,
      { after: null, limit: query.limit, order: 'asc' },
      async (i) => found[i]!,
    );
  }

  async #find(given: string, modelFolders: readonly string[]): Promise<string | null> {
    if (!isId(given)) return null;
    const id = given.toLowerCase();
    const candidates = [
      this.#folders.get(id) ?? [],
      ...modelFolders.map((model) => path.join(model, 'jobs', id)),
    ];
    for (const folder of candidates.flat())
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
