/** The id of a training job -> the job with its events and its end, by polling. */
import { setTimeout as sleep } from 'node:timers/promises';
import { allOf } from '../../common/index.ts';
import { type ErrorCode, errorCodes, OnpolicyError } from '../../errors.ts';
import type { TrainingJobEvent, TrainingJobInfo, TrainingJobStatus, TrainingResult } from '../index.ts';
import type { Service, TrainingJob, TrainingJobsResource } from './service.ts';

/** Maximum number of events per request. */
const PAGE = 100;

/** A job at a server. It is polled only while its caller waits for events or its end. */
export class RemoteJob implements TrainingJob {
  readonly id: string;
  readonly #modelId: string;
  readonly #service: Service;
  readonly #pollMs: number;
  #status: TrainingJobStatus = 'queued';
  #done: Promise<TrainingResult> | null = null;

  constructor(id: string, modelId: string, service: Service, pollMs: number) {
    this.id = id;
    this.#modelId = modelId;
    this.#service = service;
    this.#pollMs = pollMs;
  }

  /** The status of the last poll. */
  get status(): TrainingJobStatus {
    return this.#status;
  }

  /** Polls for events until the job has ended and all were returned. */
  async *events(): AsyncGenerator<TrainingJobEvent> {
    const { trainingJobs } = this.#service;
    const onStatus = (status: TrainingJobStatus): void => {
      this.#status = status;
    };
    for await (const event of jobEvents(trainingJobs, this.id, {
      after: null,
      pollMs: this.#pollMs,
      onStatus,
    })) {
      if (this.#status === 'queued') this.#status = 'running'; // a job with events is no longer queued
      yield event;
    }
  }

  /** The result of the job. The first access starts polling. */
  get done(): Promise<TrainingResult> {
    this.#done ??= this.#result();
    return this.#done;
  }

  async cancel(): Promise<void> {
    this.#status = (await this.#service.trainingJobs.cancel(this.id)).status;
    while (!isEnded(this.#status)) {
      await sleep(this.#pollMs);
      await this.#poll();
    }
  }

  async #poll(): Promise<TrainingJobInfo> {
    const info = await this.#service.trainingJobs.retrieve(this.id);
    this.#status = info.status;
    return info;
  }

  async #result(): Promise<TrainingResult> {
    let info = await this.#poll();
    for (; !isEnded(info.status); info = await this.#poll()) await sleep(this.#pollMs);
    const { status, error, step, metrics } = info;
    if (status === 'cancelled') throw new OnpolicyError('ABORTED', 'the training job was cancelled');
    if (status === 'failed')
      throw new OnpolicyError(codeOf(error?.code), error?.message ?? 'the training job failed');
    if (step === null) throw new OnpolicyError('BACKEND_FAILED', 'the training job left no checkpoint');
    const checkpoint_id = await this.#checkpointId(step);
    return { job_id: this.id, model_id: this.#modelId, step, checkpoint_id, metrics };
  }

  async #checkpointId(step: number): Promise<string | null> {
    if (step === 0) return null;
    const { checkpoints } = this.#service;
    const list = (after: string | null) =>
      checkpoints.list(this.#modelId, { after, limit: PAGE, order: 'desc' });
    for await (const checkpoint of allOf(list)) if (checkpoint.step === step) return checkpoint.id;
    throw new OnpolicyError('NOT_FOUND', `checkpoint ${step} was deleted`);
  }
}

/** State and functions of polling the events of a job. */
type EventPolling = {
  /** The id of the last known event. */
  readonly after: string | null;
  readonly pollMs: number;
  readonly signal?: AbortSignal;
  readonly onStatus?: (status: TrainingJobStatus) => void;
};

/** Yields the events of a job as they occur, until the job has ended. */
export async function* jobEvents(
  jobs: TrainingJobsResource,
  id: string,
  { after, pollMs, signal, onStatus }: EventPolling,
): AsyncGenerator<TrainingJobEvent> {
  const options = signal ? { signal } : {};
  let isOver = false;
  for (let last = after; ; ) {
    const page = await jobs.events(id, { after: last, limit: PAGE }, options);
    yield* page.data;
    last = page.last_id ?? last;
    if (page.has_more) continue;
    if (isOver) return;
    if (page.data.length === 0) {
      const { status } = await jobs.retrieve(id, options);
      onStatus?.(status);
      isOver = isEnded(status); // its last events may have occurred since
    }
    if (!isOver) await sleep(pollMs, undefined, options).catch(() => signal?.throwIfAborted());
  }
}

function isEnded(status: TrainingJobStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

function codeOf(code: string | undefined): ErrorCode {
  return errorCodes.find((known) => known === code) ?? 'BACKEND_FAILED';
}
