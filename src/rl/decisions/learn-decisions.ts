/** Corrected decisions -> a checkpoint that decides better and says how sure it is, or the model as it was. */
import { type Calibration, formLogits } from '../../answer/index.ts';
import { shuffled } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  checkArguments,
  type DecisionCalibration,
  type DecisionKind,
  type DecisionQuestion,
  type JsonObject,
  withDefaults,
} from '../../protocol/index.ts';
import type { Service, TrainingRun } from '../../protocol/service/index.ts';
import {
  type DecisionMeasures,
  fitCalibration,
  fitTemperature,
  lossOf,
  measure,
  type ScoredQuestion,
} from './calibration.ts';
import {
  type AskedQuestion,
  askAll,
  type CheckedExample,
  checkExamples,
  type DecisionExample,
  datumOf,
} from './examples.ts';

/** An epoch of `learnDecisions`. */
export type LearnDecisionsEvent = {
  readonly type: 'epoch';
  /** The number of the epoch. 0 is the model before it learns. */
  readonly epoch: number;
  /** Cross-entropy of the labels on the part `train` while it learned. Null for epoch 0. */
  readonly trainLoss: number | null;
  /** Loss on the part `calibrate`, with the calibrations that fit it best. */
  readonly loss: number;
};

/** Options of {@link learnDecisions}. */
export type LearnDecisionsOptions = Omit<
  Arguments['LearnDecisionsOptions'],
  'service' | 'examples' | 'onEvent'
> & {
  readonly service: Pick<Service, 'decide' | 'openTraining' | 'trainingRuns' | 'checkpoints' | 'models'>;
  readonly examples: readonly DecisionExample[];
  /** Called after each epoch. */
  readonly onEvent?: ((event: LearnDecisionsEvent) => void) | undefined;
};

/** Held-out questions of a kind, before and after. */
export type DecisionComparison = {
  readonly before: DecisionMeasures;
  readonly after: DecisionMeasures;
  /** False if too few questions were there to fit a calibration, which is then that of the model before. */
  readonly isFitted: boolean;
};

/** The measurements of a run of {@link learnDecisions}. All numbers are of the trainer's forward pass. */
export type DecisionReport = {
  readonly kinds: { readonly [Kind in DecisionQuestion['type']]?: DecisionComparison };
  /** The epoch whose weights were measured: the one with the lowest loss. */
  readonly epoch: number;
  readonly curve: readonly Omit<LearnDecisionsEvent, 'type'>[];
  /** Number of examples by part. */
  readonly examples: { readonly train: number; readonly calibrate: number; readonly heldOut: number };
};

/** The result of {@link learnDecisions}. */
export type LearnedDecisions = {
  /** False: the loss on held-out examples did not fall by more than its standard error, and the model is as it was. */
  readonly kept: boolean;
  readonly modelId: string;
  /** Model name of the new checkpoint. Null if nothing was kept. */
  readonly checkpoint: string | null;
  readonly report: DecisionReport;
  /** Deletes the checkpoint, so that the one before it answers again. */
  undo(): Promise<void>;
};

/** Fewest questions of a kind to which a calibration is fitted. */
const FEWEST_TO_FIT = 30;
/** Epochs without a lower loss after which learning ends. */
const PATIENCE = 2;
/** Questions that are scored in one step of the run. */
const SCORED_AT_ONCE = 32;
/** Name of the run's state with the lowest loss. */
const BEST = 'best';

/**
 * Learns from decisions with their right answers, by cross-entropy of the labels. A part of the examples ends the training early and fits a
 * calibration for each kind of question, another part decides whether the result is kept. Until then the model answers as before.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options or examples, `UNSUPPORTED` if the service cannot decide or train, or for pictures
 */
export async function learnDecisions(options: LearnDecisionsOptions): Promise<LearnedDecisions> {
  const { service, onEvent, signal } = options;
  const checked = checkArguments('LearnDecisionsOptions', options as Arguments['LearnDecisionsOptions']);
  const { model, epochs, batchSize, learningRate, orders, rank, seed } = withDefaults(
    'LearnDecisionsOptions',
    checked,
  );
  const examples = checkExamples(options.examples);
  if (!service.decide || !service.openTraining)
    throw new OnpolicyError('UNSUPPORTED', 'the service has no decisions or no training runs');
  const call = signal ? { signal } : {};
  const indexed = examples.map((example, index) => [index, example] as const);
  const decide: NonNullable<Service['decide']> = (request, more) => service.decide!(request, more);
  const asked = await askAll(decide, model, indexed, { turn: 0, orders, signal });
  const ofPart = (part: CheckedExample['part']): AskedQuestion[] =>
    asked.filter(({ example }) => examples[example]!.part === part);
  const turns = [ofPart('train')];
  const toTrain = indexed.filter(([, { part }]) => part === 'train');
  for (let turn = 1; turn < orders; turn++)
    turns.push(await askAll(decide, model, toTrain, { turn, orders, signal }));
  const [calibrate, heldOut] = [ofPart('calibrate'), ofPart('heldOut')];

  const run = await service.openTraining({ model, rank, seed }, call);
  const curve: Omit<LearnDecisionsEvent, 'type'>[] = [];
  let best = { epoch: 0, loss: Number.POSITIVE_INFINITY, fits: new Map() as Fits };

  /** Measures an epoch, and saves its weights if it is the best one. */
  async function close(epoch: number, trainLoss: number | null): Promise<void> {
    const scored = await score(run, calibrate, call);
    const fits = fitsOf(scored, asked);
    const loss = meanOf(scored.map((one) => lossOf(one, fits.get(one.kind)!.calibration)));
    if (loss < best.loss) {
      best = { epoch, loss, fits };
      await run.saveState(BEST, call);
    }
    curve.push({ epoch, trainLoss, loss });
    onEvent?.({ type: 'epoch', epoch, trainLoss, loss });
  }

  /** Takes the optimizer steps of an epoch. Returns its loss. */
  async function learn(epoch: number): Promise<number> {
    const questions = turns[(epoch - 1) % orders]!;
    const order = shuffled(questions.length, seed, epoch);
    let sum = 0;
    for (let from = 0; from < order.length; from += batchSize) {
      const batch = order.slice(from, from + batchSize).map((i) => questions[i]!);
      const data = batch.map((one) => datumOf(one, 1 / batch.length));
      const { metrics } = await run.forwardBackward(data, {}, call);
      await run.optimStep({ learning_rate: learningRate, grad_clip_norm: 1 }, call);
      sum += metrics!['loss:sum']! * batch.length;
    }
    return sum / order.length;
  }

  try {
    const before = await score(run, heldOut, call);
    await close(0, null);
    for (let epoch = 1; epoch <= epochs && epoch - best.epoch <= PATIENCE; epoch++)
      await close(epoch, await learn(epoch));
    await run.loadState(BEST, {}, call);
    const { fits } = best;
    const after = await score(run, heldOut, call);
    const countOf = (part: CheckedExample['part']) => examples.filter((one) => one.part === part).length;
    const report: DecisionReport = {
      kinds: compare(before, after, fits),
      epoch: best.epoch,
      curve,
      examples: {
        train: countOf('train'),
        calibrate: countOf('calibrate'),
        heldOut: countOf('heldOut'),
      },
    };
    const losses = heldOut.map((question, i) => ({
      before: lossOf(before[i]!, question.calibration),
      after: lossOf(after[i]!, fits.get(question.kind)!.calibration),
    }));
    const kept = isBetter(heldOut, losses);
    const decisions = { ...toStored(fits), report: report as unknown as JsonObject };
    const checkpoint = kept ? await run.saveWeightsForSampler({ decisions, ...call }) : null;
    await service.models.log(run.modelId, {
      split: 'decisions',
      trajectory_groups: logged(examples, heldOut, losses),
    });
    const { modelId } = run;
    const undo = async (): Promise<void> => {
      if (checkpoint === null) return;
      const step = Number(checkpoint.slice(checkpoint.lastIndexOf('@') + 1));
      await service.checkpoints.delete(modelId, { steps: [step] });
    };
    return { kept, modelId, checkpoint, report, undo };
  } finally {
    await service.trainingRuns?.delete(run.id).catch(() => {}); // its checkpoint stays
  }
}

/** Returns the questions with the logits that the weights of a run give them. */
async function score(
  run: TrainingRun,
  questions: readonly AskedQuestion[],
  call: { readonly signal?: AbortSignal },
): Promise<ScoredQuestion[]> {
  const scored: ScoredQuestion[] = [];
  for (let from = 0; from < questions.length; from += SCORED_AT_ONCE) {
    const some = questions.slice(from, from + SCORED_AT_ONCE);
    const data = some.map((one) => datumOf(one, 'score'));
    const { loss_fn_outputs } = await run.forward(data, { weighted_only: true }, call);
    for (const [i, { kind, example, target, labels }] of some.entries()) {
      const row = loss_fn_outputs![i]!.logprobs.data.slice(-labels.flat().length);
      scored.push({ kind, example, target, logits: formLogits(row, labels) });
    }
  }
  return scored;
}

type Fit = {
  /** That of the model before. */
  readonly before: Calibration;
  readonly calibration: Calibration;
  /** The best temperature without noise. Null if it is not known. */
  readonly alone: number | null;
  readonly isFitted: boolean;
};

type Fits = ReadonlyMap<DecisionKind, Fit>;

/** Returns the best calibration of each kind. A kind with few scored questions keeps that of the model before. */
function fitsOf(scored: readonly ScoredQuestion[], asked: readonly AskedQuestion[]): Fits {
  const kinds = new Map(asked.map(({ kind, calibration }) => [kind, calibration]));
  return new Map(
    [...kinds].map(([kind, before]): [DecisionKind, Fit] => {
      const own = scored.filter((one) => one.kind === kind);
      if (own.length >= FEWEST_TO_FIT)
        return [
          kind,
          { before, calibration: fitCalibration(own), alone: fitTemperature(own), isFitted: true },
        ];
      const alone = before.noise === 0 ? before.temperature : null;
      return [kind, { before, calibration: before, alone, isFitted: false }];
    }),
  );
}

/** Returns what a checkpoint keeps of the fits. */
function toStored(fits: Fits): DecisionCalibration {
  const temperatures: Partial<Record<DecisionKind, number>> = {};
  const with_noise: Partial<Record<DecisionKind, Calibration>> = {};
  for (const [kind, { calibration, alone }] of fits) {
    if (alone !== null) temperatures[kind] = alone;
    if (calibration.noise > 0) with_noise[kind] = calibration;
  }
  return { temperatures, with_noise };
}

/** Measures the held-out questions of each kind. */
function compare(
  before: readonly ScoredQuestion[],
  after: readonly ScoredQuestion[],
  fits: Fits,
): DecisionReport['kinds'] {
  const kinds: Partial<Record<DecisionKind, DecisionComparison>> = {};
  for (const [kind, fit] of fits) {
    const own = (all: readonly ScoredQuestion[]) => all.filter((one) => one.kind === kind);
    if (own(before).length === 0) continue;
    kinds[kind] = {
      before: measure(own(before), fit.before),
      after: measure(own(after), fit.calibration),
      isFitted: fit.isFitted,
    };
  }
  return kinds;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

type Losses = { readonly before: number; readonly after: number };

/** Returns true if the mean loss of an example fell by more than one standard error of the differences. */
function isBetter(asked: readonly AskedQuestion[], losses: readonly Losses[]): boolean {
  const byExample = new Map<number, number[]>();
  for (const [i, { example }] of asked.entries())
    byExample.set(example, [...(byExample.get(example) ?? []), losses[i]!.before - losses[i]!.after]);
  const falls = [...byExample.values()].map(meanOf);
  const count = falls.length;
  const mean = meanOf(falls);
  const variance = falls.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (count - 1);
  return mean > Math.sqrt(variance / count);
}

/** Returns the held-out questions for the log: a group for each, whose reward is the probability of what is right. */
function logged(
  examples: readonly CheckedExample[],
  asked: readonly AskedQuestion[],
  losses: readonly Losses[],
) {
  const places = new Map<number, number>(); // questions of an example that were logged
  return asked.map(({ example }, i) => {
    const { input, questions, targets } = examples[example]!;
    const place = places.get(example) ?? 0;
    places.set(example, place + 1);
    const { before, after } = losses[i]!;
    const content = typeof input === 'string' ? input : JSON.stringify(input);
    const { instructions, ...question } = questions[place]!;
    const asks = typeof instructions === 'string' ? instructions : JSON.stringify(instructions);
    const right = JSON.stringify({ ...question, right: targets[place] });
    const messages = [
      { role: 'user' as const, content: `${content}\n\n${asks}` },
      { role: 'assistant' as const, content: right },
    ];
    return {
      trajectories: [
        {
          messages_and_choices: messages,
          reward: Math.exp(-after),
          metrics: { loss: after, loss_before: before },
        },
      ],
    };
  });
}
