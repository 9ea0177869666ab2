/** Requests of training runs -> runs that are opened, restored after a restart, given their steps, and closed when idle. */
import fs from 'node:fs/promises';
import type { Queue } from '../../common/index.ts';
import { LeaseScope } from '../../common/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type { Models, RunningModel } from '../../models/index.ts';
import {
  checkRequest,
  type DecisionCalibration,
  RUN_OPERATIONS,
  type RunOperation,
  type RunRequest,
  type TextCompletion,
  type TextCompletionRequest,
  type TrainingRunInfo,
  type TrainingRunReply,
  type TrainingRunRequest,
  type TrainingRunResult,
  withDefaults,
} from '../../protocol/index.ts';
import type { CallOptions, TrainingRunsResource } from '../../protocol/service/index.ts';
import { type AdapterShape, type LossPool, nextStep, type Trainer, writeStep } from '../index.ts';
import type { Store, UsedCheckpoint } from '../store/index.ts';
import { type AdapterOptions, adapterOf, askedOfRuntime } from './adapter-settings.ts';
import { probeCheckpoint } from './probe.ts';
import { sampleOf } from './run-sample.ts';
import { StepRun } from './step-run.ts';
import { requireTrainableModel, settingsOf, type TrainerSettings, type Trainers } from './trainers.ts';

/** Dependencies of training runs. */
export type TrainingRunsContext = {
  readonly models: Models;
  /** Throws when the runtime is closed. */
  readonly store: () => Store;
  readonly settings: Omit<TrainerSettings, 'threads' | 'contextSize'>;
  readonly trainers: Trainers;
  readonly queue: Queue;
  readonly lossPool: () => LossPool;
  /** Called when a model has a new checkpoint. */
  readonly onCheckpoint: (modelId: string) => Promise<void>;
  /** Answers a request in this process. */
  readonly answer: (request: TextCompletionRequest) => Promise<TextCompletion>;
};

type Open = { readonly run: StepRun; readonly held: Disposable; timer: NodeJS.Timeout | undefined };

/** A run is closed and its state saved after this many milliseconds without a step. */
const KEPT_FOR_MS = 600_000;
const MOST_OPEN = 32;

/** The training runs of one runtime. */
export class TrainingRuns implements TrainingRunsResource {
  readonly #context: TrainingRunsContext;
  readonly #open = new Map<string, Promise<Open>>();
  #probes = 0;

  constructor(context: TrainingRunsContext) {
    this.#context = context;
  }

  async create(request: TrainingRunRequest, { signal }: CallOptions = {}): Promise<TrainingRunInfo> {
    const store = this.#context.store();
    const {
      model: name,
      rank,
      alpha,
      seed,
    } = withDefaults('TrainingRunRequest', checkRequest('TrainingRunRequest', request, {}));
    const found = await store.findModel(name);
    const base_model = found?.base_model ?? name;
    using leases = new LeaseScope();
    const { model: base } = leases.add(await this.#context.models.memory.use(base_model, { signal }));
    requireTrainableModel(base, 'model');
    const model = found ?? (await store.createModel({ base_model, name: null, return_existing: false }));
    using newest = await store.useCheckpoint(model.id);
    const { settings } = this.#context;
    const asked = {
      options: { ...settings, rank: rank ?? settings.rank, alpha: alpha ?? settings.alpha },
      pathOf: (field: keyof AdapterOptions) =>
        (field === 'rank' && rank !== null) || (field === 'alpha' && alpha !== null)
          ? [field]
          : ['training', field],
    };
    const shape = await adapterOf(base.path, startOf(newest), asked);
    const record = await store.addStepRun({
      model_id: model.id,
      base_model,
      rank: shape.rank,
      alpha: shape.alpha,
      adapter: { rslora: shape.rslora, modules: shape.modules },
      seed,
      base: await identify(base.path),
    });
    const { run } = await this.#openRun(record.id);
    try {
      await run.open();
    } catch (error) {
      await this.delete(record.id);
      throw error;
    }
    return toInfo(run);
  }

  async list(): Promise<readonly TrainingRunInfo[]> {
    const records = await this.#context.store().listStepRuns();
    return records.map(toClosedInfo);
  }

  async retrieve(id: string): Promise<TrainingRunInfo> {
    const open = await this.#open.get(id.toLowerCase())?.catch(() => null);
    return open ? toInfo(open.run) : toClosedInfo(await this.#find(id));
  }

  async call(
    id: string,
    operation: RunOperation,
    request: RunRequest,
    _options: CallOptions = {},
  ): Promise<TrainingRunReply> {
    if (!Object.hasOwn(RUN_OPERATIONS, operation))
      throw new OnpolicyError('NOT_FOUND', `a training run has no operation ${JSON.stringify(operation)}`);
    checkRequest(RUN_OPERATIONS[operation], request, {});
    const { run } = await this.#openRun(id);
    const { key, sequence, done } = await run.submit(operation, request);
    return await replyOf(`${run.record.id}.${key}`, sequence, done, request.wait_ms ?? null);
  }

  async result(
    requestId: string,
    { wait_ms = null }: { readonly wait_ms?: number | null } = {},
  ): Promise<TrainingRunReply> {
    const [id, key] = [requestId.slice(0, 36), requestId.slice(37)];
    const open = await this.#open.get(id.toLowerCase())?.catch(() => null);
    if (!open)
      throw new OnpolicyError('NOT_FOUND', `there is no open training run of the request ${requestId}`);
    const { sequence, done } = open.run.find(key);
    return await replyOf(requestId, sequence, done, wait_ms);
  }

  async close(id: string): Promise<TrainingRunInfo> {
    const record = await this.#find(id);
    await this.#closeRun(record.id, true);
    return await this.retrieve(record.id);
  }

  async delete(id: string): Promise<TrainingRunInfo> {
    const record = await this.#find(id);
    await this.#closeRun(record.id, false);
    await this.#context.store().deleteStepRun(record);
    return toClosedInfo(record);
  }

  /** Closes all runs and saves their states. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.#closeRun(id, true)));
  }

  async #find(id: string) {
    const wanted = String(id).toLowerCase();
    const record = (await this.#context.store().listStepRuns()).find((one) => one.id === wanted);
    if (record) return record;
    throw new OnpolicyError('NOT_FOUND', `there is no training run ${JSON.stringify(id)}`);
  }

  /** Returns the run. Opens it with its last saved state if it is closed. */
  async #openRun(given: string): Promise<Open> {
    const id = String(given).toLowerCase();
    let opening = this.#open.get(id);
    if (!opening) {
      if (this.#open.size >= MOST_OPEN)
        throw new OnpolicyError('OVERLOADED', `${MOST_OPEN} training runs are open; close one of them`);
      opening = this.#reopen(id);
      this.#open.set(id, opening);
      opening.catch(() => this.#open.delete(id));
    }
    const open = await opening;
    clearTimeout(open.timer);
    open.timer = setTimeout(() => void this.#leave(id, open), KEPT_FOR_MS).unref();
    return open;
  }

  async #reopen(id: string): Promise<Open> {
    const record = await this.#find(id);
    const held = await this.#context
      .store()
      .holdModel(record.model_id, () => void this.#closeRun(id, false).catch(() => {}));
    return { run: new StepRun(record, this.#tools()), held, timer: undefined };
  }

  /** Closes a run that has been idle for long. */
  async #leave(id: string, open: Open): Promise<void> {
    if ((await this.#open.get(id)?.catch(() => null)) !== open) return; // it was closed, and opened again
    if (open.run.isBusy) open.timer = setTimeout(() => void this.#leave(id, open), KEPT_FOR_MS).unref();
    else await this.#closeRun(id, true).catch(() => {}); // its last saved state stays
  }

  async #closeRun(id: string, isSaved: boolean): Promise<void> {
    const opening = this.#open.get(id);
    const open = await opening?.catch(() => null);
    if (!open) return;
    clearTimeout(open.timer);
    try {
      await open.run.close({ isSaved });
    } finally {
      this.#context.trainers.release(open.run);
      if (this.#open.get(id) === opening) this.#open.delete(id);
      open.held[Symbol.dispose]();
    }
  }

  #tools(): ConstructorParameters<typeof StepRun>[1] {
    const { lossPool, answer } = this.#context;
    const store = this.#context.store(); // also while the runtime closes
    return {
      lossPool,
      use: (run, work) => this.#use(run, (trainer, base) => work(trainer, base.tokenizer.vocabSize)),
      begin: async (trainer, record) => {
        const state = record.states.at(-1);
        if (state) return await trainer.load(store.stepRuns.stateFolder(record, state));
        using used = await store.useCheckpoint(record.model_id);
        await (used.folder === null ? trainer.reset(record.seed) : trainer.load(used.folder));
      },
      save: (record, name, sequence, trainer) =>
        store.saveStepRun(record, { name, sequence }, (folder) => trainer.save(folder)),
      load: async (record, { name, from }, trainer, isWhole) => {
        const source = from === null || from === record.id ? record : await this.#find(from);
        requireSameBase(source, record);
        using _held = source === record ? null : await store.holdModel(source.model_id, () => {});
        const state = source.states.find((one) => one.name === name);
        if (!state)
          throw noState(
            source.states.map((one) => one.name),
            name,
          );
        await trainer.load(store.stepRuns.stateFolder(source, state));
        if (isWhole) return;
        const { value } = await trainer.state();
        await trainer.reset();
        await trainer.restore({ value });
      },
      publish: (record, trainer, decisions) => this.#publish(record, trainer, store, decisions ?? null),
      sample: async (record, given) => {
        const { request, read } = sampleOf(record.model_id, given);
        return read(await answer(request));
      },
    };
  }

  async #use<Result>(
    run: StepRun,
    work: (trainer: Trainer, base: RunningModel) => Promise<Result>,
  ): Promise<Result> {
    const { models, queue, trainers, settings } = this.#context;
    const { base_model, base: opened } = run.record;
    using leases = new LeaseScope();
    const { model: base } = leases.add(await models.memory.use(base_model, {}));
    const { bytes, modified } = await identify(base.path);
    if (bytes !== opened.bytes || modified !== opened.modified)
      throw new OnpolicyError(
        'CONFLICT',
        `the file ${base.path} is not the one that the training run began with`,
      );
    const adapter = await this.#shapeOf(run.record, base);
    const { gpu, memoryBudget } = settings;
    return await queue.run(base.path, () =>
      trainers.use(base.path, { gpu, memoryBudget, ...adapter, ...settingsOf(base) }, run, (trainer) =>
        work(trainer, base),
      ),
    );
  }

  /**
   * Returns the adapter shape of a run. If its record has only a part of the shape, the rest is that of the checkpoint it continues from.
   */
  async #shapeOf(record: StepRun['record'], base: RunningModel): Promise<AdapterShape> {
    const { rank, alpha, adapter } = record;
    if (adapter) return { rank, alpha, ...adapter };
    const store = this.#context.store();
    const state = record.states.at(-1);
    using newest = await store.useCheckpoint(record.model_id);
    const start = state
      ? { step: JSON.stringify(state.name), folder: store.stepRuns.stateFolder(record, state) }
      : startOf(newest);
    const { rslora, modules } = this.#context.settings;
    return await adapterOf(
      base.path,
      start,
      askedOfRuntime(start ? { rank, alpha } : { rank, alpha, rslora, modules }),
    );
  }

  /** Publishes weights. Call it only with the trainer of the base model. */
  async #publish(
    { model_id: modelId, base_model }: StepRun['record'],
    trainer: Trainer,
    store: Store,
    decisions: DecisionCalibration | null,
  ): Promise<string> {
    const { models, onCheckpoint } = this.#context;
    using leases = new LeaseScope();
    const { model: base } = leases.add(await models.memory.use(base_model, {}));
    const checkpoints = store.checkpointsFolder(modelId);
    const step = await nextStep(checkpoints);
    const id = store.newCheckpointId(modelId, step);
    const facts = { id, step, metrics: {}, trajectory_hash: '' };
    await writeStep(checkpoints, trainer, facts, {
      decisions,
      probe: (folder) => probeCheckpoint(base, folder, new AbortController().signal, this.#probes++),
    });
    await onCheckpoint(modelId).catch(() => {}); // the next request meets the same failure, and reports it
    return `${modelId}@${step}`;
  }
}

/** Returns null for the base model. */
function startOf({ step, folder }: UsedCheckpoint): { step: number; folder: string } | null {
  return folder === null ? null : { step, folder };
}

async function identify(file: string): Promise<{ bytes: number; modified: number }> {
  const { size, mtimeMs } = await fs.stat(file);
  return { bytes: size, modified: mtimeMs };
}

async function replyOf(
  request_id: string,
  sequence: number,
  done: Promise<TrainingRunResult>,
  waitMs: number | null,
): Promise<TrainingRunReply> {
  if (waitMs === null) return { request_id, sequence, status: 'completed', result: await done };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), waitMs);
  });
  const result = await Promise.race([done, late]).finally(() => clearTimeout(timer));
  return result === null
    ? { request_id, sequence, status: 'pending' }
    : { request_id, sequence, status: 'completed', result };
}

function toInfo(run: StepRun): TrainingRunInfo {
  return { ...toClosedInfo(run.record), sequence: run.sequence };
}

function toClosedInfo({
  states,
  base: _,
  format: __,
  adapter: ___,
  ...record
}: StepRun['record']): TrainingRunInfo {
  return {
    object: 'training_run',
    ...record,
    sequence: states.at(-1)?.sequence ?? 0,
    states: states.map(({ name }) => name),
  };
}

/** Throws if a run began with another model file. */
function requireSameBase({ base: other, id }: StepRun['record'], { base }: StepRun['record']): void {
  if (other.bytes !== base.bytes || other.modified !== base.modified)
    throw errorAt('run', 'CONFLICT', `the training run ${id} began with another model file`);
}

function noState(known: readonly string[], name: string): OnpolicyError {
  const expected = known.length === 0 ? 'nothing: the run has no saved state' : `one of ${known.join(', ')}`;
  return errorAt('name', 'NOT_FOUND', `expected ${expected}, got ${JSON.stringify(name)}`);
}
