/** Rows and their losses -> gradients and optimizer steps on an opened trainer. Jobs and runs of steps are made of them. */
import { failIfAborted, OnpolicyError } from '../errors.ts';
import type { AdapterWeights } from '../native/index.ts';
import type { PackedRow, StepOptions, TrainingJobEvent } from '../protocol/index.ts';
import type { LossPool } from './loss-pool.ts';
import { Averages, type Metrics } from './metrics.ts';
import type { ChatTokenizer } from './tokens.ts';
import type { Trainer } from './trainer.ts';

/** What happens while a job runs: the wire's events before they get their id and time. */
export type JobEvent = WithoutStamp<TrainingJobEvent>;

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'id' | 'created'> : never;

/** Everything a job works with; it owns none of it. */
export type StepTools = {
  /** Opened on the model, with the adapter and optimizer state to continue from. */
  readonly trainer: Trainer;
  readonly tokenizer: ChatTokenizer;
  readonly lossPool: LossPool;
  readonly emit: (event: JobEvent) => void;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds of a steady clock. */
  readonly now: () => number;
  /** The adapter of an earlier step, for `kl_penalty_reference_step`. */
  readonly readReference?: ((step: number) => Promise<AdapterWeights>) | undefined;
};

/** What a forward pass gives. */
export type ForwardScores = Awaited<ReturnType<Trainer['forward']>>;

/** The loss of a row, and its gradient. */
export type RowLoss = {
  readonly loss: number;
  readonly gradient: Float32Array; // (targets) d(loss) / d(log-probability)
  readonly metrics: Readonly<Record<string, number | null>>;
};

/** One optimizer step over some rows. */
export type PlannedStep = {
  readonly rows: readonly PackedRow[];
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

/** One optimizer step on what was added since the last one. It changes nothing unless all of that was finite. */
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

/** Takes the steps of a job, one after the other, with an event each. */
export async function takeSteps(
  plan: Iterable<PlannedStep>,
  { trainer, emit, signal }: Pick<StepTools, 'trainer' | 'emit' | 'signal'>,
): Promise<Metrics> {
  const overall = new Averages();
  let skippedCount = 0;
  let skippedInARow = 0;
  let gradient_step = 0;
  for (const { rows, lossOf, options } of plan) {
    const averages = new Averages();
    let areFinite = true;
    for (const [i, row] of rows.entries()) {
      failIfAborted(signal, 'the training job');
      const added = await addGradient(trainer, row, (scores) => lossOf(scores, i));
      averages.add(added.metrics);
      areFinite &&= added.areFinite;
    }
    failIfAborted(signal, 'the training job');
    const { gradNorm, isApplied } = await stepIfFinite(areFinite, trainer, options);
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
