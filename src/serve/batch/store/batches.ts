/** Batches of clients -> runs, one after the other, whose records outlive the process. */
import path from 'node:path';
import { errorAt, fromNative, messageOf, OnpolicyError } from '../../../errors.ts';
import type {
  BatchObject,
  BatchProgress,
  BatchRequest,
  Page,
  Scope,
  ValidListQuery,
} from '../../../protocol/index.ts';
import { type BatchService, createBatch } from '../index.ts';
import type { Files } from './files.ts';
import { type Asker, Records } from './records.ts';

/** The client that created a batch: its key and the scopes of its token. */
export type BatchClient = { readonly owner: string; readonly scopes: readonly Scope[] };

/** Returns the service that answers the rows of a client's batch. */
export type RowsFor = (client: BatchClient) => BatchService;

type Stored = BatchObject &
  BatchClient & {
    /** Ids of its files while it runs. */
    readonly files: { readonly output: string; readonly errors: string };
  };

type Running = { readonly stop: AbortController; counts: BatchObject['request_counts'] | null };

const HAS_ENDED = new Set<BatchObject['status']>(['completed', 'failed', 'cancelled']);

export class Batches {
  readonly #records: Records<Stored>;
  readonly #files: Files;
  readonly #running = new Map<string, Running>(); // running batches, and those in the queue
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(folder: string, files: Files) {
    this.#records = new Records(path.join(folder, 'batches'), 'batch_');
    this.#files = files;
  }

  async create(
    request: BatchRequest,
    client: BatchClient,
    asker: Asker,
    rowsFor: RowsFor,
  ): Promise<BatchObject> {
    const { input_file_id, endpoint, completion_window, metadata } = request;
    await this.#files.retrieve(input_file_id, asker).catch((error: unknown) => {
      throw errorAt('input_file_id', 'NOT_FOUND', messageOf(error));
    });
    const stored: Stored = {
      id: this.#records.newId(),
      object: 'batch',
      endpoint,
      errors: null,
      input_file_id,
      completion_window: completion_window ?? '24h',
      status: 'validating',
      output_file_id: null,
      error_file_id: null,
      created_at: now(),
      in_progress_at: null,
      completed_at: null,
      failed_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      metadata: metadata ?? null,
      ...client,
      files: { output: this.#files.newId(), errors: this.#files.newId() },
    };
    await this.#records.put(stored);
    this.#queue(stored, rowsFor);
    return shown(stored);
  }

  /** Continues the batches that an earlier process did not finish. */
  async resume(rowsFor: RowsFor): Promise<void> {
    for (const id of await this.#records.ids()) {
      const stored = await this.#records.get(id, ANYBODY).catch(() => null); // null: the record is damaged
      // Several requests may resume at once: nothing is awaited between this look and the queue.
      if (stored && !HAS_ENDED.has(stored.status) && !this.#running.has(id)) this.#queue(stored, rowsFor);
    }
  }

  async retrieve(id: string, asker: Asker): Promise<BatchObject> {
    return this.#current(await this.#records.get(id, asker));
  }

  async list(query: ValidListQuery, asker: Asker): Promise<Page<BatchObject>> {
    const page = await this.#records.list(query, asker);
    return { ...page, data: page.data.map((stored) => this.#current(stored)) };
  }

  /** Cancels a batch. Finished rows keep their answers. */
  async cancel(id: string, asker: Asker): Promise<BatchObject> {
    const stored = await this.#records.get(id, asker);
    const running = this.#running.get(id);
    if (HAS_ENDED.has(stored.status) || !running)
      throw new OnpolicyError('CONFLICT', `the batch ${id} has ended: it is ${stored.status}`, {
        param: 'id',
      });
    const cancelling: Stored = { ...stored, status: 'cancelling', cancelling_at: now() };
    await this.#records.put(cancelling);
    running.stop.abort(CANCELLED);
    return this.#current(cancelling);
  }

  /** Returns true if a queued or running batch reads this file. */
  async needs(file: string): Promise<boolean> {
    for (const id of this.#running.keys()) {
      const stored = await this.#records.get(id, ANYBODY).catch(() => null);
      if (stored?.input_file_id === file) return true;
    }
    return false;
  }

  /** Stops all runs. The next process continues them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { stop } of this.#running.values()) stop.abort();
    await this.#last;
  }

  #current(stored: Stored): BatchObject {
    const counts = this.#running.get(stored.id)?.counts;
    return shown(counts ? { ...stored, request_counts: counts } : stored);
  }

  #queue(stored: Stored, rowsFor: RowsFor): void {
    const running: Running = { stop: new AbortController(), counts: null };
    this.#running.set(stored.id, running);
    const run = async (): Promise<void> => {
      try {
        await this.#run(stored.id, running, rowsFor(stored));
      } catch {
        // If the record cannot be written, the next process tries again.
      } finally {
        this.#running.delete(stored.id);
      }
    };
    this.#last = this.#last.then(run);
  }

  async #run(id: string, running: Running, service: BatchService): Promise<void> {
    const { signal } = running.stop;
    if (this.#isClosed) return;
    const begun = await this.#records.get(id, ANYBODY);
    const { endpoint, input_file_id, files } = begun;
    if (begun.status === 'cancelling')
      return await this.#end(begun, { status: 'cancelled', cancelled_at: now() });
    await this.#records.put({
      ...begun,
      status: 'in_progress',
      in_progress_at: begun.in_progress_at ?? now(),
    });
    const onProgress = ({ rows, failed }: BatchProgress): void => {
      running.counts = { total: rows, completed: rows - failed, failed };
    };
    const batch = createBatch(service, this.#files.dataOf(input_file_id), {
      output: this.#files.dataOf(files.output),
      errors: this.#files.dataOf(files.errors),
      resume: true,
      url: endpoint as never,
      seed: id,
      signal,
      onProgress,
    });
    const end = await batch.done.then(
      () => ({ status: 'completed', completed_at: now() }) as const,
      (error: unknown) => {
        if (signal.reason === CANCELLED) return { status: 'cancelled', cancelled_at: now() } as const;
        const { code, message, param } = fromNative(error);
        if (signal.aborted || code === 'CLOSED') return null; // the next process continues the batch
        const data = [{ code, message, param: param ?? null, line: null }];
        return { status: 'failed', failed_at: now(), errors: { object: 'list', data } } as const;
      },
    );
    if (!end) return;
    const latest = await this.#records.get(id, ANYBODY); // its status may have changed to `cancelling`
    await this.#end({ ...latest, request_counts: running.counts ?? latest.request_counts }, end);
  }

  /** Publishes the output files, then stores the batch's final status. */
  async #end(stored: Stored, end: Partial<BatchObject>): Promise<void> {
    const { id, owner, files } = stored;
    const publish = async (file: string, what: string): Promise<string | null> => {
      if (!(await this.#files.hasData(file))) return null;
      await this.#files.publish(file, { owner, filename: `${id}_${what}.jsonl`, purpose: 'batch_output' });
      return file;
    };
    const output_file_id = await publish(files.output, 'output');
    const error_file_id = await publish(files.errors, 'error');
    await this.#records.put({ ...stored, ...end, output_file_id, error_file_id });
    await this.#files.dropJournal(files.output);
  }
}

/** An asker that may read every record. */
const ANYBODY: Asker = { owner: '', isAdmin: true };
const CANCELLED = new OnpolicyError('ABORTED', 'the batch was cancelled');

function shown({ owner: _, scopes: __, files: ___, ...batch }: Stored): BatchObject {
  return batch;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
