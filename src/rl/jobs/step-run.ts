/** One training run: steps in the order of their numbers -> their results. A repeated step gets the result of the first. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorAt, OnpolicyError } from '../../errors.ts';
import {
  type AdamParams,
  type RunDataRequest,
  type RunOperation,
  type RunRequest,
  type TrainingRunResult,
  withDefaults,
} from '../../protocol/index.ts';
import {
  addGradient,
  type DataPlan,
  type ForwardScores,
  type LossPool,
  onTrainer,
  planData,
  stepIfFinite,
  Tallies,
  type Trainer,
  type TrainerState,
} from '../index.ts';
import type { StepRunRecord } from '../store/index.ts';
import type { ParkedState } from './trainers.ts';

/** Dependencies of a run. */
export type StepRunTools = {
  readonly lossPool: () => LossPool;
  /** Runs `work` with the trainer of the base model, after the state of this run was put into it. */
  readonly use: <Result>(
    run: StepRun,
    work: (trainer: Trainer, vocabSize: number) => Promise<Result>,
  ) => Promise<Result>;
  /** Puts the initial state of a run into a trainer. */
  readonly begin: (trainer: Trainer, record: StepRunRecord) => Promise<void>;
  readonly save: (
    record: StepRunRecord,
    name: string,
    sequence: number,
    trainer: Trainer,
  ) => Promise<StepRunRecord>;
  /** `from`: id of the run that has the state; null for this run. */
  readonly load: (
    record: StepRunRecord,
    state: { readonly name: string; readonly from: string | null },
    trainer: Trainer,
    isWhole: boolean,
  ) => Promise<void>;
  /** Publishes the weights and returns their name. */
  readonly publish: (
    record: StepRunRecord,
    trainer: Trainer,
    decisions: RunRequest['decisions'],
  ) => Promise<string>;
  readonly sample: (record: StepRunRecord, request: RunRequest) => Promise<TrainingRunResult>;
};

/** An accepted step. */
type Entry = { readonly sequence: number; readonly done: Promise<TrainingRunResult> };

/** Number of results that are kept for repeated steps. */
const KEPT_RESULTS = 128;
/** Highest number of waiting steps. */
const MOST_QUEUED = 64;
/** Milliseconds that a step waits for missing steps before it. */
const GAP_MS = 30_000;
/** Name of the state that is saved when a run is closed. */
const LAST_STATE = 'last';

/** An open run. */
export class StepRun implements ParkedState {
  readonly #tools: StepRunTools;
  readonly #stop = new AbortController();
  readonly #entries = new Map<string, Entry>();
  #record: StepRunRecord;
  #parked: TrainerState | null = null;
  #isBegun = false;
  #accepted: number;
  /** The last step after which no gradients waited for an optimizer step. */
  #whole: number;
  #isSaved = true;
  #areGradientsFinite = true;
  #queued = 0;
  #last: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(record: StepRunRecord, tools: StepRunTools) {
    this.#record = record;
    this.#tools = tools;
    this.#accepted = record.states.at(-1)?.sequence ?? 0;
    this.#whole = this.#accepted;
  }

  get record(): StepRunRecord {
    return this.#record;
  }

  /** Number of accepted steps. */
  get sequence(): number {
    return this.#accepted;
  }

  get isBusy(): boolean {
    return this.#queued > 0;
  }

  /** Fires when the run is closed. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Loads the initial state, so that a model that cannot be trained is refused at once. */
  async open(): Promise<void> {
    await this.#tools.use(this, async () => {});
  }

  async park(trainer: Trainer): Promise<void> {
    this.#parked = await trainer.state();
  }

  async resume(trainer: Trainer): Promise<void> {
    if (this.#parked) await trainer.restore(this.#parked);
    else if (this.#isBegun)
      throw new OnpolicyError('BACKEND_FAILED', 'the state of the training run is lost');
    else await this.#tools.begin(trainer, this.#record);
    this.#isBegun = true;
    this.#parked = null;
  }

  /** Accepts a step, or returns the earlier one with the same key. A numbered step waits for its turn and for room in the queue. */
  async submit(operation: RunOperation, request: RunRequest): Promise<{ key: string } & Entry> {
    const { idempotency_key: given = null, sequence: wanted } = request;
    if (wanted != null) await this.#reach(wanted, given);
    const known = this.#entries.get(given!);
    if (known) return { key: given!, ...known };
    if (wanted != null && wanted !== this.#accepted + 1)
      throw errorAt(
        'sequence',
        'CONFLICT',
        `expected ${this.#accepted + 1}, the next step of the training run, got ${wanted}`,
      );
    if (this.#stop.signal.aborted) throw closed();
    if (wanted == null && this.#queued >= MOST_QUEUED)
      throw new OnpolicyError('OVERLOADED', `the training run has ${MOST_QUEUED} steps that wait`);
    this.#accepted++;
    const sequence = this.#accepted;
    const key = given ?? `step-${sequence}`;
    this.#queued++;
    const done = this.#last
      .then(() => this.#perform(operation, request, sequence))
      .finally(() => {
        this.#queued--;
      });
    this.#last = done.catch(() => {}); // callers that read the result receive the error
    const entry = { sequence, done };
    this.#entries.set(key, entry);
    for (const [old] of this.#entries) if (this.#entries.size > KEPT_RESULTS) this.#entries.delete(old);
    return { key, ...entry };
  }

  /** Returns the step of a key. @throws OnpolicyError `NOT_FOUND` */
  find(key: string): Entry {
    const entry = this.#entries.get(key);
    if (entry) return entry;
    throw new OnpolicyError(
      'NOT_FOUND',
      `the training run ${this.#record.id} has no step ${JSON.stringify(key)}`,
    );
  }

  /** Ends the running step, and saves the state if it has changed since the last save. */
  close({ isSaved = true }: { isSaved?: boolean } = {}): Promise<void> {
    this.#closing ??= this.#close(isSaved);
    return this.#closing;
  }

  async #close(isSaved: boolean): Promise<void> {
    this.#stop.abort(closed());
    await this.#last;
    if (isSaved && !this.#isSaved && this.#isBegun)
      await this.#tools.use(this, async (trainer) => {
        this.#record = await this.#tools.save(this.#record, LAST_STATE, this.#whole, trainer);
      });
    this.#parked = null;
  }

  /** Waits for room in the queue, and for a limited time for the steps before this one. */
  async #reach(sequence: number, key: string | null): Promise<void> {
    let deadline = performance.now() + GAP_MS;
    while (sequence > this.#accepted && !this.#entries.has(key!) && !this.#stop.signal.aborted) {
      if (this.#queued >= MOST_QUEUED) deadline = performance.now() + GAP_MS;
      else if (sequence === this.#accepted + 1 || performance.now() >= deadline) return;
      await sleep(5);
    }
  }

  async #perform(operation: RunOperation, request: RunRequest, sequence: number): Promise<TrainingRunResult> {
    if (this.#stop.signal.aborted) throw closed();
    if (operation === 'sample') return await this.#tools.sample(this.#record, request);
    return await this.#tools.use(this, (trainer, vocabSize) =>
      onTrainer({ trainer, signal: this.#stop.signal }, async () => {
        switch (operation) {
          case 'forward':
          case 'forward_backward':
            return await this.#learn(trainer, vocabSize, request as RunDataRequest, operation === 'forward');
          case 'optim_step':
            return await this.#step(trainer, request.adam_params ?? {}, sequence);
          case 'save_state': {
            if (request.overwrite === false && this.#record.states.some(({ name }) => name === request.name))
              throw errorAt('name', 'CONFLICT', `the training run has a state ${request.name}`);
            this.#record = await this.#tools.save(
              this.#record,
              request.name!,
              this.#wholeAt(sequence),
              trainer,
            );
            this.#isSaved = true;
            return { path: request.name! };
          }
          case 'load_state': {
            const state = { name: request.name!, from: request.run ?? null };
            await this.#tools.load(this.#record, state, trainer, request.optimizer ?? true);
            this.#areGradientsFinite = true;
            this.#isSaved = false;
            this.#whole = sequence;
            return { path: request.name! };
          }
          case 'save_weights_for_sampler':
            return { path: await this.#tools.publish(this.#record, trainer, request.decisions) };
          default:
            return operation satisfies never;
        }
      }),
    );
  }

  /** Returns the position of a state saved by a step: the step itself, unless gradients would be missing from it. */
  #wholeAt(sequence: number): number {
    return this.#whole === sequence - 1 ? sequence : this.#whole;
  }

  async #learn(
    trainer: Trainer,
    vocabSize: number,
    request: RunDataRequest,
    isForward: boolean,
  ): Promise<TrainingRunResult> {
    const { contextSize } = trainer.info;
    const isWhole = !(request.weighted_only ?? !isForward);
    const plan = planData(request, { vocabSize, contextSize }, this.#tools.lossPool(), isWhole);
    for (const { row } of plan.rows) await trainer.checkMemory(row);
    let areFinite = this.#areGradientsFinite;
    const before = isForward ? null : trainer.gradients();
    const outputs = plan.shapes.map(([length, width]) => new Float32Array(length! * (width ?? 1)));
    const tallies = new Tallies();
    let sum = 0;
    try {
      await plan.begin(async () => {
        const all: ForwardScores[] = [];
        for (const { row } of plan.rows) all.push(await trainer.forward(row, { gradients: false }));
        return all;
      });
      for (const row of plan.rows) {
        const lossOf = (scores: ForwardScores) => plan.lossOf(row, scores);
        const scores = isForward ? await trainer.forward(row.row, { gradients: false }) : null;
        const scored = scores
          ? { ...(await lossOf(scores)), ...scores, areFinite: true }
          : await addGradient(trainer, row.row, lossOf);
        const { loss, tally, logprobs } = scored;
        areFinite &&= scored.areFinite;
        for (const [i, datum] of row.datumOf.entries()) outputs[datum]![row.positionOf[i]!] = logprobs[i]!;
        sum += loss;
        tallies.add(tally);
      }
    } catch (error) {
      if (before) await trainer.restore({ gradient: before });
      throw error;
    }
    if (!isForward) {
      this.#areGradientsFinite = areFinite;
      this.#isSaved = false;
    }
    return toResult(plan, outputs, { 'loss:sum': sum, ...tallies.read() });
  }

  async #step(trainer: Trainer, given: AdamParams, sequence: number): Promise<TrainingRunResult> {
    const adam = withDefaults('AdamParams', given);
    const areFinite = this.#areGradientsFinite;
    this.#areGradientsFinite = true;
    const { gradNorm, isApplied } = await stepIfFinite(areFinite, trainer, {
      learningRate: adam.learning_rate,
      beta1: adam.beta1,
      beta2: adam.beta2,
      eps: adam.eps,
      weightDecay: adam.weight_decay,
      maxGradNorm: adam.grad_clip_norm,
    });
    this.#isSaved = false;
    this.#whole = sequence;
    const norm = Number.isFinite(gradNorm) ? { 'loss/grad_norm': gradNorm } : {};
    return {
      metrics: {
        ...norm,
        'loss/learning_rate': adam.learning_rate,
        'train/skipped_steps': isApplied ? 0 : 1,
      },
    };
  }
}

function toResult(
  { shapes }: DataPlan,
  outputs: readonly Float32Array[],
  metrics: Record<string, number>,
): TrainingRunResult {
  return {
    loss_fn_outputs: outputs.map((logprobs, i) => ({
      logprobs: { data: [...logprobs], dtype: 'float32', shape: shapes[i]! },
    })),
    metrics,
  };
}

function closed(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the training run is closed');
}
