/** Calls -> models, checkpoints, jobs and runs in the files of one home folder. */
import { LeaseScope, pageOf, Queue, storeFailed } from '../../common/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type {
  Checkpoint,
  CheckpointDeletion,
  Model,
  ModelDeletion,
  Page,
  ValidListQuery,
  ValidModelCreateRequest,
} from '../../protocol/index.ts';
import { nextStep, stepFolder } from '../index.ts';
import { Checkpoints } from './checkpoints.ts';
import { Home, type ProblemListener } from './home.ts';
import { byPlace, placedId, placeOf } from './ids.ts';
import { type JobOutcome, Jobs, type OpenJob } from './jobs.ts';
import { Leases } from './leases.ts';
import { MODELS, type ModelRecord, ModelRecords, noModel } from './model-records.ts';
import { Runs, type TrainedGroups } from './runs.ts';
import { type StepRunRecord, StepRuns } from './step-runs.ts';

/** A checkpoint that is not deleted before this is disposed of. */
export type UsedCheckpoint = Disposable & {
  /** 0 is the base model, without an adapter. */
  readonly step: number;
  /** Id of the checkpoint; null for step 0. */
  readonly id: string | null;
  /** Its folder with verified files; null for step 0. */
  readonly folder: string | null;
};

/** Options of {@link Store.createJob}. */
export type JobOptions = {
  /** Called when the job's model is deleted. The job must finish then. */
  readonly cancel?: () => void;
  /** Its settings; the run stores those of the newest job. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Groups that the job learns from. The run stores them when the job has completed. */
  readonly trained?: TrainedGroups;
};

/** A home folder. Reads see the writes of other processes; the first write makes this process the only writer. */
export class Store {
  readonly #home: Home;
  readonly #models: ModelRecords;
  readonly #checkpoints: Checkpoints;
  /** Training jobs of the models, also of other processes. */
  readonly jobs: Jobs;
  /** Training runs whose steps a client sends. */
  readonly stepRuns: StepRuns;
  /** Trajectories and metrics of the models. */
  readonly runs: Runs;
  readonly #leases = new Leases();
  readonly #queue = new Queue();

  /** @internal Use {@link openStore}. */
  constructor(folder: string) {
    this.#home = new Home(folder, (trashed) => this.runs.finishDeletion(trashed));
    this.#models = new ModelRecords(this.#home);
    this.#checkpoints = new Checkpoints(this.#home);
    this.jobs = new Jobs(this.#home, this.#models);
    this.stepRuns = new StepRuns(this.#home);
    this.runs = new Runs(this.#home, {
      model: (id) => this.getModel(id),
      folder: (id) => this.#models.folder(id),
      newestStep: (id) => this.newestStep(id),
      write: (id, work) => this.#writeRun(id, work),
    });
  }

  /** Absolute path of the home folder. It need not exist. */
  get folder(): string {
    return this.#home.folder;
  }

  /** Called for damaged files, which are skipped. */
  get listeners(): Set<ProblemListener> {
    return this.#home.listeners;
  }

  /** The model of this id or name; null if unknown. */
  async findModel(idOrName: string): Promise<Model | null> {
    const record = (await this.#models.get(idOrName)) ?? (await this.#models.named(idOrName));
    return record ? await this.#toModel(record) : null;
  }

  /** The model of this id. @throws OnpolicyError `MODEL_NOT_FOUND` */
  async getModel(id: string): Promise<Model> {
    return await this.#toModel(await this.#models.require(id));
  }

  /** Registers a model. @throws OnpolicyError `CONFLICT` if the name is taken, unless `return_existing` */
  async createModel({ base_model, name, return_existing }: ValidModelCreateRequest): Promise<Model> {
    return await this.#write('cannot register the model', MODELS, async () => {
      const existing =
        name === null ? undefined : (await this.#models.all()).find((one) => one.name === name);
      if (!existing) return await this.#toModel(await this.#models.add({ name, base_model }));
      if (return_existing) return await this.#toModel(existing);
      throw errorAt(
        'name',
        'CONFLICT',
        `a model named ${JSON.stringify(name)} already exists (${existing.id})`,
      );
    });
  }

  /** A page of the models, by the time of their registration. */
  async listModels(query: ValidListQuery): Promise<Page<Model>> {
    const records = new Map(
      (await this.#models.all()).map((record) => [placeOf(MODELS, record.id)!, record]),
    );
    const read = (place: number) => this.#toModel(records.get(place)!);
    return await pageOf([...records.keys()], byPlace(MODELS, query), read);
  }

  /** Stops the model's jobs, waits until its leases are released, and deletes it with all that belongs to it. */
  async deleteModel(given: string, signal?: AbortSignal): Promise<ModelDeletion> {
    const { id } = await this.#models.require(given);
    await this.#home.startWriting();
    using _closed = await this.#leases.drain(id, `the model ${id}`, signal);
    return await this.#write(`cannot delete the model ${id}`, id, async () => {
      await this.#models.require(id);
      const deletedCheckpoints = (await this.#checkpoints.steps(id)).length;
      const hasRun = await this.runs.hasContent(id);
      await this.runs.idle();
      const trashed = await this.#home.discard(this.#models.folder(id), `model-${id}`);
      const isRemoved = await this.#removeDiscarded(trashed);
      return { model_id: id, deleted_checkpoints: deletedCheckpoints, deleted_run: isRemoved && hasRun };
    });
  }

  /** The folder of a model's checkpoints. It need not exist. */
  checkpointsFolder(modelId: string): string {
    return this.#checkpoints.folder(modelId.toLowerCase());
  }

  /** The steps of a model that have a checkpoint, in order. */
  async checkpointSteps(modelId: string): Promise<readonly number[]> {
    return await this.#checkpoints.steps(modelId.toLowerCase());
  }

  /** The highest step that a model ever had, also of a deleted checkpoint; 0: none. */
  async newestStep(modelId: string): Promise<number> {
    return (await nextStep(this.checkpointsFolder(modelId))) - 1;
  }

  /** The id for a new checkpoint; it works as a cursor. */
  newCheckpointId(modelId: string, step: number): string {
    return placedId(modelId.toLowerCase(), step);
  }

  /**
   * Takes a lease on a checkpoint, so that it is not deleted while in use. `step`: default the newest; 0 is the base model.
   * @throws OnpolicyError `MODEL_NOT_FOUND`, `NOT_FOUND`; `STORE_FAILED` if one of its files is missing or damaged
   */
  async useCheckpoint(modelId: string, step?: number): Promise<UsedCheckpoint> {
    const { id } = await this.#models.require(modelId);
    using scope = new LeaseScope();
    scope.add(this.#hold(id));
    const wanted = step ?? (await this.#checkpoints.steps(id)).at(-1) ?? 0;
    if (!scope.add(this.#leases.take(`${id}@${wanted}`))) throw noCheckpoint(id, wanted);
    if (wanted === 0) return scope.handOver({ step: 0, id: null, folder: null });
    const checkpoint = await this.#checkpoints.read(id, wanted);
    if (!checkpoint) throw noCheckpoint(id, wanted);
    await this.#checkpoints.check(id, checkpoint);
    const folder = stepFolder(this.#checkpoints.folder(id), wanted);
    return scope.handOver({ step: wanted, id: checkpoint.id, folder });
  }

  /** A page of a model's checkpoints, by step. */
  async listCheckpoints(modelId: string, query: ValidListQuery): Promise<Page<Checkpoint>> {
    const { id } = await this.#models.require(modelId);
    const steps = await this.#checkpoints.steps(id);
    return await pageOf(steps, byPlace(id, query), (step) => this.#checkpoints.read(id, step));
  }

  /** Every readable checkpoint of a model, by step, with all that was measured of it: by its training, later jobs and log calls. */
  async measuredCheckpoints(modelId: string): Promise<Checkpoint[]> {
    const { id } = await this.#models.require(modelId);
    const measured = await this.runs.meansByStep(id);
    const found: Checkpoint[] = [];
    const steps = await this.#checkpoints.steps(id);
    for (let i = 0; i < steps.length; i += READ_AT_ONCE) {
      const some = steps.slice(i, i + READ_AT_ONCE).map((step) => this.#checkpoints.read(id, step));
      for (const one of await Promise.all(some))
        if (one) found.push({ ...one, metrics: { ...one.metrics, ...measured.get(one.step) } });
    }
    return found;
  }

  /** Deletes checkpoints. Waits for those in use. */
  async deleteCheckpoints(
    modelId: string,
    steps: readonly number[],
    signal?: AbortSignal,
  ): Promise<CheckpointDeletion> {
    const { id } = await this.#models.require(modelId);
    using _model = this.#hold(id);
    const notFound: number[] = [];
    let deletedCount = 0;
    await this.#home.startWriting();
    for (const step of new Set(steps)) {
      const what = `the checkpoint of step ${step} of the model ${id}`;
      using _closed = await this.#leases.drain(`${id}@${step}`, what, signal);
      const trashed = await this.#write(`cannot delete ${what}`, id, () =>
        this.#checkpoints.discard(id, step),
      );
      if (trashed === null) notFound.push(step);
      else {
        deletedCount++;
        await this.#removeDiscarded(trashed);
      }
    }
    return { deleted_count: deletedCount, not_found_steps: notFound };
  }

  /**
   * Creates a training job of a model. The model is not deleted before the job has finished.
   * @throws OnpolicyError `MODEL_NOT_FOUND`; `STORE_FAILED` if this process cannot write
   */
  async createJob(modelId: string, { cancel, config, trained }: JobOptions = {}): Promise<OpenJob> {
    const { id } = await this.#models.require(modelId);
    using scope = new LeaseScope();
    scope.add(this.#hold(id, cancel));
    const folder = this.#models.folder(id);
    const job = await this.#write('cannot store the training job', id, async () => {
      if (config) await this.runs.saveConfig(id, config);
      return await this.jobs.create(folder, id);
    });
    const held = scope.handOver({});
    const finish = async (outcome: JobOutcome) => {
      using _held = held;
      const info = await job.finish(outcome);
      if (outcome.status === 'completed')
        await this.runs.logTraining(id, outcome.step, outcome.metrics, trained ?? null);
      return info;
    };
    return { ...job, finish };
  }

  /** Adds a training run whose steps a client sends. @throws OnpolicyError `MODEL_NOT_FOUND` */
  async addStepRun(given: Parameters<StepRuns['add']>[0]): Promise<StepRunRecord> {
    const { id } = await this.#models.require(given.model_id);
    using _model = this.#hold(id);
    return await this.#write('cannot store the training run', id, () => this.stepRuns.add(given));
  }

  /** Such runs of all models, oldest first. */
  async listStepRuns(): Promise<StepRunRecord[]> {
    return await this.stepRuns.all((await this.#models.all()).map(({ id }) => id));
  }

  /** Saves a state of such a run, which `write` writes to a folder. */
  async saveStepRun(...[record, state, write]: Parameters<StepRuns['save']>): Promise<StepRunRecord> {
    return await this.#write('cannot save the state', record.model_id, () =>
      this.stepRuns.save(record, state, write),
    );
  }

  /** Deletes such a run with its states. */
  async deleteStepRun(record: StepRunRecord): Promise<void> {
    await this.#removeDiscarded(
      await this.#write('cannot delete the training run', record.model_id, () =>
        this.stepRuns.discard(record),
      ),
    );
  }

  /** Keeps a model from being deleted; `cancel` is called when it is to be. @throws OnpolicyError `MODEL_NOT_FOUND` */
  async holdModel(modelId: string, cancel: () => void): Promise<Disposable> {
    return this.#hold((await this.#models.require(modelId)).id, cancel);
  }

  /** Waits for running writes, then lets other processes write. */
  async close(): Promise<void> {
    await this.#queue.idle();
    await this.runs.idle();
    await this.#home.close();
  }

  /** Writes to a model's run. The model is not deleted meanwhile. */
  async #writeRun<Result>(id: string, work: () => Promise<Result>): Promise<Result> {
    using _model = this.#hold(id);
    return await this.#write(`cannot log to the model ${id}`, id, work);
  }

  async #toModel({ id, name, base_model, created }: ModelRecord): Promise<Model> {
    const step = (await this.#checkpoints.steps(id)).at(-1) ?? 0;
    return { id, object: 'model', name, base_model, created, step };
  }

  /** Keeps a model. `onDelete` is called when it is to be deleted. */
  #hold(id: string, onDelete?: () => void): Disposable {
    const taken = this.#leases.take(id, onDelete);
    if (!taken) throw noModel(id);
    return taken;
  }

  /** Returns false if that failed. Then the folder is removed when the home is next opened. */
  async #removeDiscarded(folder: string): Promise<boolean> {
    return await this.#home.removeDiscarded(folder).then(
      () => true,
      (error: unknown) => {
        this.#home.report(folder, error);
        return false;
      },
    );
  }

  /** Writes as the only writer, after other work on `name`. */
  async #write<Result>(failure: string, name: string, work: () => Promise<Result>): Promise<Result> {
    await this.#home.startWriting();
    try {
      return await this.#queue.run(name, work);
    } catch (error) {
      throw storeFailed(failure, error);
    }
  }
}

const READ_AT_ONCE = 64;

function noCheckpoint(modelId: string, step: number): OnpolicyError {
  return new OnpolicyError('NOT_FOUND', `the model ${modelId} has no checkpoint of step ${step}`);
}
