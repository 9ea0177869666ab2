/** Requests to train -> jobs that run one after the other on each model file, and write checkpoints. */
import { conversationTokenizer } from '../../answer/index.ts';
import { LeaseScope, onAbort, Queue } from '../../common/index.ts';
import { abortedBy, failIfAborted, OnpolicyError } from '../../errors.ts';
import type { RunningModel } from '../../models/index.ts';
import {
  type Checked,
  checkJobListQuery,
  checkListQuery,
  type Model,
  type TrainingJobInfo,
  type TrainingJobRequest,
  type TrainingResult,
  withDefaults,
} from '../../protocol/index.ts';
import type { CallOptions, TrainingJob, TrainingJobsResource } from '../../protocol/service/index.ts';
import {
  type AdapterShape,
  completeSettings,
  type LossPool,
  openLossPool,
  type SftRequest,
  sft,
  type TrainResult,
  type TrainTools,
  train,
} from '../index.ts';
import { requireKnownSteps, type UsedCheckpoint } from '../store/index.ts';
import { adapterOf, askedOfRuntime, requireReference } from './adapter-settings.ts';
import { probeCheckpoint } from './probe.ts';
import { RunningJob } from './running-job.ts';
import { requireTrainable, type TrainableModel } from './trainable.ts';
import { requireTrainableModel, settingsOf, Trainers } from './trainers.ts';
import { TrainingRuns, type TrainingRunsContext } from './training-runs.ts';

/** Dependencies of training. */
export type TrainingContext = Omit<TrainingRunsContext, 'settings' | 'trainers' | 'queue' | 'lossPool'> & {
  readonly settings: TrainingRunsContext['settings'] & {
    /** Bytes of trajectories that the run of a model keeps. */
    readonly trajectoryBytes?: number | undefined;
  };
};

/** Settings of a job, and the requirements on its model. */
type JobPlan = {
  /** Returns the additional step whose weights the job needs, from the newest step. Null or 0 if there is none. */
  readonly reference: (newest: number) => number | null;
  /** Trajectory groups that are stored in the run. */
  readonly groups?: Checked<TrainingJobRequest>['trajectory_groups'];
  readonly settings: Readonly<Record<string, unknown>>;
  readonly require: (model: TrainableModel) => void;
};

/** `reference`: the step whose weights the job needs in addition. */
type Work = (tools: TrainTools, reference: number | null) => Promise<TrainResult>;

/** The training jobs of one runtime. */
export class Training {
  readonly #context: TrainingContext;
  readonly #trainers = new Trainers();
  readonly #queue = new Queue();
  readonly #running = new Map<string, RunningJob>(); // running and queued jobs, by id
  #lossPool: LossPool | null = null;
  #probes = 0;
  /** Training runs whose steps a client sends. */
  readonly runs: TrainingRuns;

  constructor(context: TrainingContext) {
    this.#context = context;
    const { trajectoryBytes: _, ...settings } = context.settings;
    const [trainers, queue] = [this.#trainers, this.#queue];
    const lossPool = () => this.#openLossPool();
    this.runs = new TrainingRuns({ ...context, settings, trainers, queue, lossPool });
  }

  /** Starts reinforcement learning on groups of scored trajectories. Resolves when the job is queued. */
  async train(
    { model_id, trajectory_groups, experimental_config }: Checked<TrainingJobRequest>,
    options: CallOptions,
  ): Promise<TrainingJob> {
    const settings = completeSettings(experimental_config);
    const require = (model: TrainableModel): void => requireTrainable(trajectory_groups, settings, model);
    const { kl_penalty_reference_step: step, kl_penalty_step_lag: lag } = settings;
    const reference = (newest: number) => (lag === null ? step : Math.max(0, newest - lag));
    const plan = { groups: trajectory_groups, settings, reference, require };
    return await this.#submit(model_id, plan, options, (tools, kl_penalty_reference_step) =>
      train({ groups: trajectory_groups, settings: { ...settings, kl_penalty_reference_step } }, tools),
    );
  }

  /** Starts supervised learning on given answers. Resolves when the job is queued. */
  async sft({ model_id, data, config }: SftRequest, options: CallOptions): Promise<TrainingJob> {
    const settings = withDefaults('SftConfig', config);
    const require = (): void => {}; // its tokens are made here
    return await this.#submit(model_id, { settings, reference: () => null, require }, options, (tools) =>
      sft({ data, settings }, tools),
    );
  }

  /** Returns jobs by id, including those of earlier processes. */
  readonly jobs: TrainingJobsResource = {
    list: async (query) => await this.#context.store().jobs.list(checkJobListQuery(query)),
    retrieve: async (id) => await this.#context.store().jobs.read(id),
    events: async (id, query) => await this.#context.store().jobs.events(id, checkListQuery(query)),
    follow: (id, query) => this.#running.get(id.toLowerCase())?.events(query) ?? null,
    cancel: (id) => this.#cancel(id),
  };

  /** Stops all jobs and frees the trainers. */
  async close(): Promise<void> {
    const closed = new OnpolicyError('CLOSED', 'the runtime was closed');
    for (const handle of this.#running.values()) handle.stop(closed);
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
    await this.runs.closeAll();
    await this.#queue.idle();
    await this.#trainers.close();
    await this.#lossPool?.close();
  }

  async #submit(
    modelId: string,
    { groups, settings, reference: referenceOf, require }: JobPlan,
    { signal }: CallOptions,
    work: Work,
  ): Promise<TrainingJob> {
    const store = this.#context.store();
    failIfAborted(signal, 'the training job');
    const model = await store.getModel(modelId);
    using scope = new LeaseScope();
    const { model: base } = scope.add(await this.#context.models.memory.use(model.base_model, { signal }));
    requireTrainableModel(base, 'model_id');
    if (groups) requireKnownSteps(groups, await store.newestStep(model.id));
    require({
      vocabSize: base.tokenizer.vocabSize,
      experts: base.loaded.experts,
      sampling: base.defaults,
      steps: await store.checkpointSteps(model.id),
    });
    using newest = await store.useCheckpoint(model.id);
    const adapter = await this.#adapterOf(base, newest);
    const reference = referenceOf(newest.step);
    if (reference) {
      const checkpoint = scope.add(await store.useCheckpoint(model.id, reference));
      const field =
        settings['kl_penalty_step_lag'] == null ? 'kl_penalty_reference_step' : 'kl_penalty_step_lag';
      await requireReference(adapter, checkpoint, field);
    }
    const stop = new AbortController();
    const { trajectoryBytes } = withDefaults('TrainingOptions', this.#context.settings);
    const record = await store.createJob(model.id, {
      config: settings,
      ...(groups ? { trained: { groups, policyStep: newest.step, mostBytes: trajectoryBytes } } : {}),
      cancel: () => stop.abort(new OnpolicyError('ABORTED', 'its model is being deleted')),
    });
    const job = new RunningJob(record, stop);
    this.#running.set(job.id, job);
    const held = new LeaseScope(); // its model and the steps that it uses stay until the job has ended
    held.add(scope.handOver({}));
    held.add(onAbort(signal, () => job.stop(abortedBy(signal, 'the training job'))));
    void this.#queue
      .run(base.path, () =>
        job.run(() => this.#work(model, base, job, (tools) => work(tools, reference), held)),
      )
      .finally(() => {
        this.#running.delete(job.id);
        held[Symbol.dispose]();
      });
    return job;
  }

  /** Trains, and loads the new adapter. */
  async #work(
    model: Model,
    base: RunningModel,
    job: RunningJob,
    work: (tools: TrainTools) => Promise<TrainResult>,
    held: LeaseScope,
  ): Promise<TrainingResult> {
    const { onCheckpoint } = this.#context;
    const { gpu, memoryBudget } = this.#context.settings;
    const store = this.#context.store();
    const newest = held.add(await store.useCheckpoint(model.id));
    const adapter = await this.#adapterOf(base, newest);
    const tokenizer = conversationTokenizer(base);
    const lossPool = this.#openLossPool();
    const { id, step, metrics } = await this.#trainers.use(
      base.path,
      { gpu, memoryBudget, ...adapter, ...settingsOf(base) },
      null,
      (trainer) =>
        work({
          trainer,
          tokenizer,
          lossPool,
          usualTemperature: base.defaults.temperature ?? undefined,
          checkpoints: store.checkpointsFolder(model.id),
          probe: (folder) => probeCheckpoint(base, folder, job.signal, this.#probes++),
          checkpointId: (next) => store.newCheckpointId(model.id, next),
          emit: (event) => job.emit(event),
          signal: job.signal,
          now: () => performance.now(),
        }),
    );
    await onCheckpoint(model.id).catch(() => {}); // the next request meets the same failure, and reports it
    return { job_id: job.id, model_id: model.id, step, checkpoint_id: id, metrics };
  }

  /** Returns the adapter shape that a job on a checkpoint trains. */
  async #adapterOf(base: RunningModel, { step, folder }: UsedCheckpoint): Promise<AdapterShape> {
    const checkpoint = folder === null ? null : { step, folder };
    return await adapterOf(base.path, checkpoint, askedOfRuntime(this.#context.settings));
  }

  #openLossPool(): LossPool {
    this.#lossPool ??= openLossPool();
    return this.#lossPool;
  }

  async #cancel(id: string): Promise<TrainingJobInfo> {
    const store = this.#context.store();
    const { status } = await store.jobs.read(id);
    const running = this.#running.get(id.toLowerCase());
    if (running) await running.cancel();
    else if (status === 'queued' || status === 'running')
      throw new OnpolicyError('CONFLICT', `the training job ${id} runs in another process`);
    return await store.jobs.read(id);
  }
}
