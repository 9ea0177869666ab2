/** Rows and their losses -> gradients and optimizer steps on an opened trainer. Jobs and runs of steps are made of them. */
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { PackedRow, StepOptions, TrainingJobEvent } from '../protocol/index.ts';
import { Averages, type Metrics } from './metrics.ts';
import type { Trainer } from './trainer.ts';

/** What happens while a job runs: the wire's events before they get their id and time. */
export type JobEvent = WithoutStamp<TrainingJobEvent>;

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'id' | 'created'> : never;

/** What a forward pass gives. */
export type Scores = Awaited<ReturnType<Trainer['forward']>>;

/** The loss of a row, and its gradient. */
export type RowLoss = {
  readonly loss: number;
  readonly gradient: Float32Array; // (targets) d(loss) / d(log-probability)
  readonly metrics: Readonly<Record<string, number | null>>;
};

/** One optimizer step over some rows. */
export type PlannedStep = {
  readonly rows: readonly PackedRow[];
  readonly lossOf: (scores: Scores, row: number) => RowLoss | Promise<RowLoss>;
  readonly options: StepOptions;
};

/** Gathers gradients and steps. After a loss or gradient that is not finite, the next step changes nothing. */
export class Steps {
  readonly #trainer: Trainer;
  #areFinite: boolean;

  /** `areFinite`: of what was added before. */
  constructor(trainer: Trainer, areFinite = true) {
    this.#trainer = trainer;
    this.#areFinite = areFinite;
  }

  /** Whether every loss and gradient since the last step was. */
  get areFinite(): boolean {
    return this.#areFinite;
  }

  /** Log-probability and entropy of each target. */
  async score(row: PackedRow): Promise<Scores> {
    return await this.#trainer.forward(row, { gradients: false });
  }

  /** Adds the gradient of a row's loss. */
  async add(
    row: PackedRow,
    lossOf: (scores: Scores) => RowLoss | Promise<RowLoss>,
  ): Promise<RowLoss & Scores> {
    const scores = await this.#trainer.forward(row);
    const loss = await lossOf(scores);
    if (Number.isFinite(loss.loss) && loss.gradient.every(Number.isFinite))
      await this.#trainer.backward(loss.gradient);
    else this.#areFinite = false;
    return { ...loss, ...scores };
  }

  /** One optimizer step on what was added since the last one. */
  async step(options: StepOptions): Promise<{ gradNorm: number; isApplied: boolean }> {
    const areFinite = this.#areFinite;
    this.#areFinite = true;
    if (areFinite) return await this.#trainer.step(options);
    await this.#trainer.zeroGradients();
    return { gradNorm: Number.NaN, isApplied: false };
  }
}

/** Failed steps in a row after which a job gives up. */
const MAX_SKIPPED_IN_A_ROW = 3;

/** Takes the steps of a job, one after the other, with an event each. */
export async function takeSteps(
  plan: Iterable<PlannedStep>,
  {
    trainer,
    emit,
    signal,
  }: {
    readonly trainer: Trainer;
    readonly emit: (event: JobEvent) => void;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Metrics> {
  const steps = new Steps(trainer);
  const overall = new Averages();
  let skippedCount = 0;
  let skippedInARow = 0;
  let gradient_step = 0;
  for (const { rows, lossOf, options } of plan) {
    const averages = new Averages();
    for (const [i, row] of rows.entries()) {
      failIfAborted(signal, 'the training job');
      averages.add((await steps.add(row, (scores) => lossOf(scores, i))).metrics);
    }
    failIfAborted(signal, 'the training job');
    const { gradNorm, isApplied } = await steps.step(options);
    if (!isApplied) skippedCount++;
    skippedInARow = isApplied ? 0 : skippedInARow + 1;
    averages.add({ 'loss/grad_norm': gradNorm, 'loss/learning_rate': options.learningRate });
    const metrics = { ...averages.read(), 'train/skipped_steps': skippedCount };
    overall.add(averages.read());
    gradient_step++;
    emit({ type: 'gradient_step', gradient_step, metrics });
    if (skippedInARow >= MAX_SKIPPED_IN_A_ROW)
      throw new OnpolicyError(
        'TRAINING_DIVERGED',
        `${skippedInARow} gradient steps in a row had a loss or gradient that is not finite; a lower learning_rate may help`,
      );
  }
  return { ...overall.read(), 'train/skipped_steps': skippedCount };
}
