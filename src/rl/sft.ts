/** Conversations with the answers to learn -> gradient steps of cross-entropy on an opened trainer. */

import { setImmediate } from 'node:timers/promises';
import { failIfAborted } from '../errors.ts';
import type { Complete, PackedRow, SftConfig } from '../protocol/index.ts';
import { defaultRowLength, packRows, type WeightedSequence } from './pack.ts';
import type { WorkDone } from './policy-steps.ts';
import { type PlannedStep, type RowLoss, type StepTools, takeSteps } from './steps.ts';
import { tokensOf } from './tokens.ts';
import type { TrajectoryMessage } from './trajectory.ts';

/** One conversation; its assistant turns are what is learned. */
export type SftExample = {
  readonly messages: readonly TrajectoryMessage[];
  readonly tools?: readonly unknown[] | null | undefined;
};

/** All settings of supervised training. */
export type SftSettings = Complete['SftConfig'];

/** What `runtime.sft` is asked for. */
export type SftRequest = {
  /** Id of the model. */
  readonly model_id: string;
  /** Conversations; their assistant turns are what is learned. */
  readonly data: readonly SftExample[];
  readonly config?: SftConfig | null | undefined;
};

/** Runs all steps and returns the job's metrics. */
export async function trainOnExamples(
  data: readonly SftExample[],
  settings: SftSettings,
  tools: StepTools,
): Promise<WorkDone> {
  const { trainer } = tools;
  const sequences = await tokenize(data, settings, tools);
  const length =
    settings.packed_sequence_length ?? defaultRowLength(sequences.flat(), trainer.info.contextSize);
  const stepsPerEpoch = Math.ceil(sequences.length / settings.batch_size);
  const stepCount = stepsPerEpoch * settings.epochs;
  const rowsOf = (batch: number) =>
    packRows(sequences.slice(batch * settings.batch_size, (batch + 1) * settings.batch_size).flat(), length)
      .rows;
  for (let batch = 0; batch < stepsPerEpoch; batch++)
    for (const { row } of rowsOf(batch)) await trainer.checkMemory(row);
  const counts = { 'data/step_num_trajectories': sequences.length, 'data/step_num_groups_submitted': 0 };
  tools.emit({ type: 'training_started', gradient_steps: stepCount, metrics: counts });
  let probe: PackedRow | null = null;
  let [tokenCount, trainedCount] = [0, 0];
  function* plan(): Generator<PlannedStep> {
    for (let step = 0; step < stepCount; step++) {
      const rows = rowsOf(step % stepsPerEpoch);
      probe ??= rows[0]?.row ?? null;
      const targetCount = rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0);
      tokenCount += rows.reduce((sum, { row }) => sum + row.tokens.length, 0);
      trainedCount += targetCount;
      yield {
        rows: rows.map(({ row }) => row),
        lossOf: ({ logprobs }) => crossEntropy(logprobs, targetCount, rows.length),
        options: { learningRate: rateAt(step, stepCount, settings), maxGradNorm: 1 },
      };
    }
  }
  const stepped = await takeSteps(plan(), tools);
  const metrics = {
    ...counts,
    ...stepped,
    'data/step_trainable_tokens': trainedCount,
    'data/step_packed_tokens': tokenCount,
  };
  return { metrics, updates: trainedCount > 0 ? stepCount - stepped['train/skipped_steps']! : 0, probe };
}

/** A row's part of the mean over a step's targets. Its metric is so large that the mean over the step's rows is the loss. */
function crossEntropy(logprobs: Float32Array, targetCount: number, rowCount: number): RowLoss {
  const loss = -logprobs.reduce((sum, logprob) => sum + logprob, 0) / targetCount;
  const gradient = new Float32Array(logprobs.length).fill(-1 / targetCount);
  return { loss, gradient, metrics: { 'loss/train': loss * rowCount } };
}

/** The learning rate of a step, counted from 0. */
export function rateAt(
  step: number,
  stepCount: number,
  { learning_rate, schedule, warmup_ratio }: Pick<SftSettings, 'learning_rate' | 'schedule' | 'warmup_ratio'>,
): number {
  const warmupSteps = Math.floor(stepCount * warmup_ratio);
  if (step < warmupSteps) return (learning_rate * (step + 1)) / warmupSteps;
  const progress = (step - warmupSteps) / Math.max(1, stepCount - warmupSteps);
  switch (schedule) {
    case 'constant':
      return learning_rate;
    case 'linear':
      return learning_rate * (1 - progress);
    case 'cosine':
      return (learning_rate * (1 + Math.cos(Math.PI * progress))) / 2;
    default:
      return schedule satisfies never;
  }
}

/** Each example's sequences: its assistant turns take the place of sampled ones. */
async function tokenize(
  data: readonly SftExample[],
  settings: SftSettings,
  { tokenizer, signal }: StepTools,
): Promise<WeightedSequence[][]> {
  const sequences: WeightedSequence[][] = [];
  for (const [group, { messages, tools }] of data.entries()) {
    failIfAborted(signal, 'the training job');
    await setImmediate();
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const isLearned = (i: number) =>
      (settings.assistant_turns === 'all' || i === last) && messages[i]!.role === 'assistant';
    const messages_and_choices = messages.map((message, i) =>
      isLearned(i) ? { message, finish_reason: 'stop' } : message,
    );
    const found = await tokensOf({ messages_and_choices, reward: 0, tools: tools ?? null }, tokenizer, {
      allowWithoutLogprobs: true,
    });
    if (found.length > 0)
      sequences.push(found.map((sequence) => ({ ...sequence, group, advantage: 1, weight: 1 })));
  }
  return sequences;
}
