/** A script of answers -> a service in memory, for tests of its callers. Models and jobs are only recorded. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { OnpolicyError } from '../../src/errors.ts';
import {
  type BatchOptions,
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  type Checkpoint,
  checkAndAdmitChat,
  checkJobListQuery,
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkRequest,
  checkTrainingJobRequest,
  type Model,
  type Page,
  type TrainingJobEvent,
  type TrainingJobInfo,
  type TrainingResult,
} from '../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../src/protocol/service/index.ts';
import type { CallOptions, Service, TrainingJob, Transcribe } from '../../src/protocol/service/service.ts';
import { answerRows, createBatch, ROWS_AT_ONCE } from '../../src/serve/batch/index.ts';
import { transcribe } from '../../src/serve/wires/index.ts';
import { answerOf, chunkOf } from './memory-answers.ts';

/** Options of {@link createMemoryService}. */
export type MemoryServiceOptions = {
  /** Pieces of every answer. Default: the last message's content, in words. */
  readonly pieces?: readonly string[];
  /** Milliseconds before each piece. */
  readonly pieceMs?: number;
  /** Gradient steps of a training job. */
  readonly gradientSteps?: number;
  /** Milliseconds of each step. */
  readonly stepMs?: number;
  /** True if the events of its jobs can be followed. */
  readonly isLocal?: boolean;
  /** Makes training jobs fail after the first step. */
  readonly failure?: OnpolicyError;
};

/** Observations for tests, beside the contract. */
export type MemoryService = Service & {
  /** Names of the methods that were called, in order. */
  readonly calls: string[];
  /** Number of running completions. */
  readonly active: () => number;
  /** Number of pieces made so far. */
  readonly made: () => number;
  readonly report: (modelId: string) => Promise<string>;
  readonly loaded: () => [];
};

type StoredModel = { model: Model; checkpoints: Checkpoint[]; trajectories: number };
type StoredJob = {
  info: TrainingJobInfo;
  events: TrainingJobEvent[];
  stop: AbortController;
  wake: (() => void)[];
};

/** Opens a service in memory. */
export function createMemoryService(options: MemoryServiceOptions = {}): MemoryService {
  const { pieceMs = 0, gradientSteps = 2, stepMs = 1, failure } = options;
  const models = new Map<string, StoredModel>();
  const jobs = new Map<string, StoredJob>();
  const calls: string[] = [];
  const running = new Set<AbortController>();
  let made = 0;
  let isClosed = false;

  const begin = (name: string): void => {
    calls.push(name);
    if (isClosed) throw new OnpolicyError('CLOSED', 'the service is closed');
  };
  const modelOf = (id: string): StoredModel => {
    const found = models.get(id);
    if (!found) throw new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${id}`);
    return found;
  };
  const jobOf = (id: string): StoredJob => {
    const found = jobs.get(id);
    if (!found) throw new OnpolicyError('NOT_FOUND', `there is no training job ${id}`);
    return found;
  };

  async function* pieces(request: ChatCompletionRequest, signal: AbortSignal): AsyncGenerator<string> {
    const content = request.messages.at(-1)?.content ?? '';
    for (const piece of options.pieces ?? String(content).split(/(?<= )/)) {
      if (pieceMs > 0) await sleep(pieceMs, undefined, { signal }).catch(() => {});
      if (signal.aborted)
        throw isClosed
          ? new OnpolicyError('CLOSED', 'the service is closed')
          : new OnpolicyError('ABORTED', 'the request was aborted');
      made += 1;
      yield piece;
    }
  }

  async function complete(
    request: ChatCompletionRequest,
    { signal, traceId }: CallOptions = {},
  ): Promise<ChatCompletion | ChatCompletionStream> {
    begin('createCompletion');
    const { model, request_id } = checkAndAdmitChat(request);
    if (signal?.aborted) throw new OnpolicyError('ABORTED', 'the request was aborted');
    if (model !== null && model !== 'memory' && !models.has(model))
      throw new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${model}`, { param: 'model' });
    const controller = new AbortController();
    const onAbort = (): void => controller.abort();
    signal?.addEventListener('abort', onAbort, { once: true });
    running.add(controller);
    const end = (): void => {
      running.delete(controller);
      signal?.removeEventListener('abort', onAbort);
    };
    const header = {
      id: `chatcmpl-${request_id ?? traceId ?? randomUUID()}`,
      created: 0,
      model: model ?? 'memory',
    };
    const text = pieces(request, controller.signal);
    if (!request.stream) {
      let content = '';
      try {
        for await (const piece of text) content += piece;
      } finally {
        end();
      }
      return answerOf(header, content);
    }
    const chunks = (async function* (): AsyncGenerator<ChatCompletionChunk> {
      try {
        yield chunkOf(header, { role: 'assistant', content: '' }, null);
        for await (const content of text) yield chunkOf(header, { content }, null);
        yield chunkOf(header, { content: '' }, 'stop');
      } finally {
        end();
      }
    })();
    return new ChatCompletionStream(chunks, () => {
      controller.abort();
      end();
    });
  }

  async function runJob({ info, events, stop, wake }: StoredJob): Promise<TrainingResult> {
    const stored = modelOf(info.model_id);
    const job = jobs.get(info.id)!;
    const note = (event: Record<string, unknown>): void => {
      events.push({ id: randomUUID(), created: 0, metrics: {}, ...event } as TrainingJobEvent);
      for (const resume of wake.splice(0)) resume();
    };
    note({ type: 'training_started', gradient_steps: gradientSteps });
    for (let step = 1; step <= gradientSteps; step++) {
      await sleep(stepMs, undefined, { signal: stop.signal }).catch(() => {});
      if (stop.signal.aborted) {
        job.info = { ...job.info, status: 'cancelled' };
        for (const resume of wake.splice(0)) resume();
        throw new OnpolicyError('ABORTED', 'the training job was cancelled');
      }
      note({ type: 'gradient_step', gradient_step: step, metrics: { loss: 1 / step } });
      if (!failure) continue;
      job.info = { ...job.info, status: 'failed', error: { code: failure.code, message: failure.message } };
      note({ type: 'training_failed', code: failure.code, message: failure.message });
      throw failure;
    }
    const checkpoint = { id: randomUUID(), step: stored.checkpoints.length + 1, metrics: { loss: 0 } };
    stored.checkpoints.push(checkpoint);
    stored.model = { ...stored.model, step: checkpoint.step };
    job.info = { ...job.info, status: 'completed', step: checkpoint.step, metrics: checkpoint.metrics };
    note({ type: 'training_ended', step: checkpoint.step, metrics: checkpoint.metrics });
    return {
      job_id: info.id,
      model_id: info.model_id,
      step: checkpoint.step,
      checkpoint_id: checkpoint.id,
      metrics: checkpoint.metrics,
    };
  }

  async function* eventsOf(
    job: StoredJob,
    after: string | null = null,
    signal?: AbortSignal,
  ): AsyncGenerator<TrainingJobEvent> {
    signal?.addEventListener('abort', () => {
      for (const resume of job.wake.splice(0)) resume();
    });
    for (let next = job.events.findIndex(({ id }) => id === after) + 1; ; ) {
      while (next < job.events.length) yield job.events[next++]!;
      if (job.info.status !== 'running') return;
      await new Promise<void>((resume) => job.wake.push(resume));
      signal?.throwIfAborted();
    }
  }

  return {
    calls,
    active: () => running.size,
    made: () => made,
    loaded: () => [],
    report: async (id) => {
      begin('report');
      return `<!doctype html><title>${modelOf(id).model.id}</title>`;
    },
    createCompletion: complete as Service['createCompletion'],
    transcribe: ((request, callOptions) =>
      transcribe({ createCompletion: complete as never }, request, callOptions)) as Transcribe,
    batch(source, options) {
      const given = options as BatchOptions | undefined;
      return createBatch(
        { answer: answerRows(this), defaultModel: null, concurrency: ROWS_AT_ONCE },
        source,
        given,
      ) as never;
    },
    async train(request): Promise<TrainingJob> {
      begin('train');
      const { model_id } = checkTrainingJobRequest(request);
      modelOf(model_id);
      const id = randomUUID();
      const info = {
        id,
        object: 'training.job',
        model_id,
        status: 'running',
        created: 0,
        step: null,
        metrics: {},
        error: null,
      } as const;
      const job: StoredJob = { info, events: [], stop: new AbortController(), wake: [] };
      jobs.set(id, job);
      const done = runJob(job);
      done.catch(() => {});
      return {
        id,
        get status() {
          return job.info.status;
        },
        events: () => eventsOf(job),
        done,
        cancel: async () => {
          job.stop.abort();
          await done.catch(() => {});
        },
      };
    },
    models: {
      async create(request) {
        begin('models.create');
        const { base_model, name, return_existing } = checkModelCreateRequest(request);
        const existing =
          name === null ? undefined : [...models.values()].find(({ model }) => model.name === name);
        if (existing && return_existing) return existing.model;
        if (existing)
          throw new OnpolicyError('CONFLICT', `there is a model ${name} already`, { param: 'name' });
        const model = { id: randomUUID(), object: 'model', name, base_model, created: 0, step: 0 } as const;
        models.set(model.id, { model, checkpoints: [], trajectories: 0 });
        return model;
      },
      async retrieve(id) {
        begin('models.retrieve');
        return modelOf(id).model;
      },
      async list(query) {
        begin('models.list');
        return pageOf(
          [...models.values()].map(({ model }) => model),
          checkListQuery(query),
        );
      },
      async delete(id) {
        begin('models.delete');
        const { checkpoints, trajectories } = modelOf(id);
        models.delete(id);
        return { model_id: id, deleted_checkpoints: checkpoints.length, deleted_run: trajectories > 0 };
      },
      async log(id, request) {
        begin('models.log');
        const { split, trajectory_groups } = checkLogRequest(request);
        const rewards = trajectory_groups.flatMap(({ trajectories }) =>
          trajectories.map(({ reward }) => reward),
        );
        modelOf(id).trajectories += rewards.length;
        const sum = rewards.reduce((total, reward) => total + reward, 0);
        const metrics = { [`${split}/reward`]: rewards.length === 0 ? 0 : sum / rewards.length };
        return { logged_trajectories: rewards.length, metrics };
      },
    },
    checkpoints: {
      async list(id, query) {
        begin('checkpoints.list');
        return pageOf(modelOf(id).checkpoints, checkListQuery(query));
      },
      async delete(id, request) {
        begin('checkpoints.delete');
        const { steps } = checkRequest('CheckpointDeleteRequest', request, {});
        const stored = modelOf(id);
        const not_found_steps = steps.filter((step) => !stored.checkpoints.some((one) => one.step === step));
        const before = stored.checkpoints.length;
        stored.checkpoints = stored.checkpoints.filter(({ step }) => !steps.includes(step));
        return { deleted_count: before - stored.checkpoints.length, not_found_steps };
      },
    },
    trainingJobs: {
      async list(query) {
        begin('trainingJobs.list');
        const { model_id, status, ...page } = checkJobListQuery(query);
        const all = [...jobs.values()].map(({ info }) => info);
        const chosen = all.filter(
          (info) => (model_id ?? info.model_id) === info.model_id && (status ?? info.status) === info.status,
        );
        return pageOf(chosen, page);
      },
      async retrieve(id) {
        begin('trainingJobs.retrieve');
        return jobOf(id).info;
      },
      async events(id, query) {
        begin('trainingJobs.events');
        return pageOf(jobOf(id).events, { ...checkListQuery(query), order: 'asc' });
      },
      follow(id, { after, signal }) {
        if (!options.isLocal) return null;
        begin('trainingJobs.follow');
        signal.addEventListener('abort', () => calls.push('trainingJobs.left'));
        return eventsOf(jobOf(id), after, signal);
      },
      async cancel(id) {
        begin('trainingJobs.cancel');
        const job = jobOf(id);
        job.stop.abort();
        while (job.info.status === 'running') await sleep(1);
        return job.info;
      },
    },
    async close() {
      isClosed = true;
      for (const controller of running) controller.abort();
    },
    async [Symbol.asyncDispose]() {
      await this.close();
    },
  };
}

function pageOf<Item extends { id: string }>(
  items: readonly Item[],
  { after, limit, order }: ReturnType<typeof checkListQuery>,
): Page<Item> {
  const sorted = order === 'asc' ? items : items.toReversed();
  const start = after === null ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0) throw new OnpolicyError('NOT_FOUND', `after: there is no item ${after}`);
  const data = sorted.slice(start, start + limit);
  return {
    object: 'list',
    data,
    has_more: start + data.length < sorted.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}
