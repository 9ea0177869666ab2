/** Conversations with the answers to learn -> gradient steps of cross-entropy on an opened trainer. */

import { setImmediate } from 'node:timers/promises';
import { errorAt, failIfAborted, type OnpolicyError } from '../errors.ts';
import type { Complete, PackedRow, SftConfig } from '../protocol/index.ts';
import { defaultRowLength, packRows, type WeightedSequence } from './pack.ts';
import type { WorkDone } from './policy-steps.ts';
import { type PlannedStep, type RowLoss, type StepTools, takeSteps } from './steps.ts';
import { located, tokensOf } from './tokens.ts';
import type { TrajectoryMessage } from './trajectory.ts';

/** One conversation. Training learns its assistant turns. */
export type SftExample = {
  readonly messages: readonly TrajectoryMessage[];
  readonly tools?: readonly unknown[] | null | undefined;
};

/** All settings of supervised training. */
export type SftSettings = Complete['SftConfig'];

/** Request of `runtime.sft`. */
export type SftRequest = {
  /** Id of the model. */
  readonly model_id: string;
  /** Conversations. Training learns their assistant turns. */
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
  const rowsOf = (batch: number) =>
    packRows(sequences.slice(batch * settings.batch_size, (batch + 1) * settings.batch_size).flat(), length);
  const batches: number[] = []; // batches with targets
  let truncatedCount = 0;
  for (let batch = 0; batch * settings.batch_size < sequences.length; batch++) {
    const { rows, truncatedCount: ofBatch } = rowsOf(batch);
    truncatedCount += ofBatch;
    for (const { row } of rows) await trainer.checkMemory(row);
    if (rows.length > 0) batches.push(batch);
  }
  if (batches.length === 0 && truncatedCount > 0) throw allCut(truncatedCount, length);
  const stepCount = batches.length * settings.epochs;
  const counts = {
    'data/step_num_trajectories': sequences.length,
    'data/step_num_groups_submitted': 0,
    'data/step_num_truncated': truncatedCount,
  };
  tools.emit({ type: 'training_started', gradient_steps: stepCount, metrics: counts });
  let probe: PackedRow | null = null;
  let [tokenCount, trainedCount] = [0, 0];
  function* plan(): Generator<PlannedStep> {
    for (let step = 0; step < stepCount; step++) {
      const { rows } = rowsOf(batches[step % batches.length]!);
      probe ??= rows[0]!.row;
      const targetCount = rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0);
      tokenCount += rows.reduce((sum, { row }) => sum + row.tokens.length, 0);
      trainedCount += targetCount;
      yield {
        rows: rows.map(({ row }) => row),
        lossOf: ({ logprobs }) => crossEntropy(logprobs, targetCount),
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
  return { metrics, sampled: {}, updates: stepCount - stepped['train/skipped_steps']!, probe };
}

function allCut(count: number, length: number): OnpolicyError {
  return errorAt(
    'config.packed_sequence_length',
    'INVALID_REQUEST',
    `expected rows in which an answer begins, got ${length} tokens: ${count} conversations are longer, and none of the rest has an answer`,
  );
}

/** Returns a row's part of the mean over a step's targets. */
function crossEntropy(logprobs: Float32Array, targetCount: number): RowLoss {
  const sum = -logprobs.reduce((all, logprob) => all + logprob, 0);
  return {
    loss: sum / targetCount,
    gradient: new Float32Array(logprobs.length).fill(-1 / targetCount),
    tally: { means: { 'loss/train': [sum, logprobs.length] }, correlations: {} },
  };
}

/** Returns the learning rate of a step, counted from 0. */
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

/** Returns each example's sequences. Its assistant turns are handled like sampled ones. */
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
    const example = { messages_and_choices, reward: 0, tools: tools ?? null };
    const found = await tokensOf(example, tokenizer, { allowWithoutLogprobs: true }).catch(
      (error: unknown) => {
        throw located(error, `data.${group}`);
      },
    );
    if (found.length > 0)
      sequences.push(found.map((sequence) => ({ ...sequence, group, advantage: 1, weight: 1 })));
  }
  return sequences;
}
