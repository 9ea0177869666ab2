/** Rows and their losses -> gradients and optimizer steps on an opened trainer, for jobs and training runs. */
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { PackedRow, StepOptions, TrainingJobEvent } from '../protocol/index.ts';
import type { LossPool } from './loss-pool.ts';
import { Averages, type Metrics } from './metrics.ts';
import { Tallies, type Tally } from './tally.ts';
import type { ChatTokenizer } from './tokens.ts';
import type { Trainer } from './trainer.ts';

/** Events of a running job: the wire's events before they get their id and time. */
export type JobEvent = WithoutStamp<TrainingJobEvent>;

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'id' | 'created'> : never;

/** Dependencies of a job. It does not close them. */
export type StepTools = {
  /** Opened on the model, with the adapter and optimizer state to continue from. */
  readonly trainer: Trainer;
  readonly tokenizer: ChatTokenizer;
  readonly lossPool: LossPool;
  readonly emit: (event: JobEvent) => void;
  readonly signal?: AbortSignal | undefined;
  /** Sampling temperature of choices if neither they nor the settings state it. Default 1. */
  readonly usualTemperature?: number | undefined;
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Returns the folder of an earlier step, for `kl_penalty_reference_step`. */
  readonly referenceFolder?: ((step: number) => string) | undefined;
};

/** Result of a forward pass. */
export type ForwardScores = Awaited<ReturnType<Trainer['forward']>>;

/** The loss of a row, and its gradient. */
export type RowLoss = {
  readonly loss: number;
  readonly gradient: Float32Array; // (targets) d(loss) / d(log-probability)
  readonly tally: Tally;
};

/** One optimizer step over some rows. */
export type PlannedStep = {
  readonly rows: readonly PackedRow[];
  /**
   * Computes the values that the losses need of all rows together. Called before the first loss. `score`: runs a forward pass of each row.
   */
  readonly begin?: ((score: () => Promise<ForwardScores[]>) => Promise<void>) | undefined;
  readonly lossOf: (scores: ForwardScores, row: number) => RowLoss | Promise<RowLoss>;
  readonly options: StepOptions;
};

/** Adds the gradient of a row's loss, unless loss or gradient is not finite. */
export async function addGradient(
  trainer: Trainer,
  row: PackedRow,
  lossOf: (scores: ForwardScores) => RowLoss | Promise<RowLoss>,
): Promise<RowLoss & ForwardScores & { readonly areFinite: boolean }> {
  const scores = await trainer.forward(row);
  const loss = await lossOf(scores);
  const areFinite = Number.isFinite(loss.loss) && loss.gradient.every(Number.isFinite);
  if (areFinite) await trainer.backward(loss.gradient);
  return { ...loss, ...scores, areFinite };
}

/** Takes one optimizer step on the gradients added since the last one. It changes nothing if one of them was not finite. */
export async function stepIfFinite(
  areFinite: boolean,
  trainer: Trainer,
  options: StepOptions,
): Promise<{ gradNorm: number; isApplied: boolean }> {
  if (areFinite) return await trainer.step(options);
  await trainer.zeroGradients();
  return { gradNorm: Number.NaN, isApplied: false };
}

/** Failed steps in a row after which a job gives up. */
const MAX_SKIPPED_IN_A_ROW = 3;

/** Takes the steps of a job, one after the other, and emits an event for each. */
export async function takeSteps(
  plan: Iterable<PlannedStep>,
  { trainer, emit, signal }: Pick<StepTools, 'trainer' | 'emit' | 'signal'>,
): Promise<Metrics> {
  const overall = { averages: new Averages(), tallies: new Tallies() };
  let skippedCount = 0;
  let skippedInARow = 0;
  let gradient_step = 0;
  for (const { rows, begin, lossOf, options } of plan) {
    const tallies = new Tallies();
    let areFinite = true;
    await begin?.(async () => {
      const scores: ForwardScores[] = [];
      for (const row of rows) {
        failIfAborted(signal, 'the training job');
        scores.push(await trainer.forward(row, { gradients: false }));
      }
      return scores;
    });
    for (const [i, row] of rows.entries()) {
      failIfAborted(signal, 'the training job');
      const added = await addGradient(trainer, row, (scores) => lossOf(scores, i));
      for (const one of [tallies, overall.tallies]) one.add(added.tally);
      areFinite &&= added.areFinite;
    }
    failIfAborted(signal, 'the training job');
    const { gradNorm, isApplied } = await stepIfFinite(areFinite, trainer, options);
    if (!isApplied) skippedCount++;
    skippedInARow = isApplied ? 0 : skippedInARow + 1;
    const averages = new Averages();
    averages.add({ 'loss/grad_norm': gradNorm, 'loss/learning_rate': options.learningRate });
    overall.averages.add(averages.read());
    const metrics = { ...tallies.read(), ...averages.read(), 'train/skipped_steps': skippedCount };
    gradient_step++;
    emit({ type: 'gradient_step', gradient_step, metrics });
    if (skippedInARow >= MAX_SKIPPED_IN_A_ROW)
      throw new OnpolicyError(
        'TRAINING_DIVERGED',
        `${skippedInARow} gradient steps in a row had a loss or gradient that is not finite; a lower learning_rate may help`,
      );
  }
  return { ...overall.tallies.read(), ...overall.averages.read(), 'train/skipped_steps': skippedCount };
}
