/** Conversations with the answers to learn -> gradient steps of cross-entropy on an opened trainer. */
import { setImmediate } from 'node:timers/promises';
import { atTheDoor, fault, throwFaults } from '../protocol/index.ts';
import { Averages } from './metrics.ts';
import { defaultRowLength, packRows, type WeightedSequence } from './pack.ts';
import { failIfAborted, type StepTools, type WorkDone } from './policy-steps.ts';
import { trajectoryTokens } from './tokens.ts';
import type { PackedRow } from './trainer.ts';
import type { TrajectoryMessage } from './trajectory.ts';

/** One conversation; its assistant turns are what is learned. */
export type SftExample = {
  readonly messages: readonly TrajectoryMessage[];
  readonly tools?: readonly unknown[] | null;
};

/** SftSettings of supervised training. */
export type SftConfig = {
  /** Examples per optimizer step. Default 8. */
  readonly batch_size?: number;
  /** Passes over the data. Default 1. */
  readonly epochs?: number;
  /** The highest rate. Default 2e-4. */
  readonly learning_rate?: number;
  /** How the rate falls after the warm-up: not, or to 0 along a line or half a cosine. Default `cosine`. */
  readonly schedule?: 'constant' | 'linear' | 'cosine';
  /** Share of the steps over which the rate rises from 0. Default 0.03. */
  readonly warmup_ratio?: number;
  /** Learns every assistant turn, or only the last. Default `all`. */
  readonly assistant_turns?: 'all' | 'last';
  /** Tokens per row. Default: the longest example rounded up, within the model's context. */
  readonly packed_sequence_length?: number;
};

const DEFAULTS = {
  batch_size: 8,
  epochs: 1,
  learning_rate: 2e-4,
  schedule: 'cosine',
  warmup_ratio: 0.03,
  assistant_turns: 'all',
  packed_sequence_length: null,
} as const;

/** The same, complete and checked. */
export type SftSettings = {
  readonly [Name in keyof typeof DEFAULTS]: NonNullable<SftConfig[Name]> | (typeof DEFAULTS)[Name];
};

/** Runs all steps and returns the job's metrics. */
export async function trainOnExamples(
  data: readonly SftExample[],
  settings: SftSettings,
  tools: StepTools,
): Promise<WorkDone> {
  const { trainer, signal } = tools;
  const abort = () => trainer.abort();
  signal?.addEventListener('abort', abort);
  try {
    const start = tools.now();
    const sequences = await tokenize(data, settings, tools);
    const length =
      settings.packed_sequence_length ?? defaultRowLength(sequences.flat(), trainer.info.contextSize);
    const stepsPerEpoch = Math.ceil(sequences.length / settings.batch_size);
    const stepCount = stepsPerEpoch * settings.epochs;
    const counts = { 'data/step_num_trajectories': sequences.length, 'data/step_num_groups_submitted': 0 };
    tools.emit({ type: 'training_started', gradient_steps: stepCount, metrics: counts });
    const averages = new Averages();
    let probe: PackedRow | null = null;
    let [tokenCount, trainedCount, skippedCount] = [0, 0, 0];
    for (let step = 0; step < stepCount; step++) {
      const from = (step % stepsPerEpoch) * settings.batch_size;
      const { rows } = packRows(sequences.slice(from, from + settings.batch_size).flat(), length);
      probe ??= rows[0]?.row ?? null;
      const targetCount = rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0);
      let loss = 0;
      for (const { row } of rows) {
        failIfAborted(signal);
        const { logprobs } = await trainer.forward(row);
        loss -= logprobs.reduce((sum, logprob) => sum + logprob, 0) / targetCount;
        await trainer.backward(new Float32Array(logprobs.length).fill(-1 / targetCount));
        tokenCount += row.tokens.length;
      }
      trainedCount += targetCount;
      failIfAborted(signal);
      const learningRate = rateAt(step, stepCount, settings);
      const { gradNorm, isApplied } = await trainer.step({ learningRate, maxGradNorm: 1 });
      if (!isApplied) skippedCount++;
      const metrics = { 'loss/train': loss, 'loss/grad_norm': gradNorm, 'loss/learning_rate': learningRate };
      averages.add(metrics);
      tools.emit({ type: 'gradient_step', gradient_step: step + 1, metrics });
    }
    const seconds = (tools.now() - start) / 1000;
    const metrics = {
      ...counts,
      ...averages.read(),
      'train/skipped_steps': skippedCount,
      'data/step_trainable_tokens': trainedCount,
      'data/step_packed_tokens': tokenCount,
      'time/step_trainer_s': seconds,
      'throughput/train_tok_per_s': seconds > 0 ? tokenCount / seconds : 0,
    };
    return { metrics, updates: trainedCount > 0 ? stepCount - skippedCount : 0, probe };
  } finally {
    signal?.removeEventListener('abort', abort);
  }
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
    failIfAborted(signal);
    await setImmediate();
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const isLearned = (i: number) =>
      (settings.assistant_turns === 'all' || i === last) && messages[i]!.role === 'assistant';
    const messages_and_choices = messages.map((message, i) =>
      isLearned(i) ? { message, finish_reason: 'stop' } : message,
    );
    const found = await trajectoryTokens(
      { messages_and_choices, reward: 0, tools: tools ?? null },
      tokenizer,
      {
        allowWithoutLogprobs: true,
      },
    );
    if (found.length > 0)
      sequences.push(found.map((sequence) => ({ ...sequence, group, advantage: 1, weight: 1 })));
  }
  return sequences;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 1;
const isNumber = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && value >= least && value <= most;

/** What each field accepts. */
const CHECKS: Record<keyof SftSettings, readonly [expected: string, accepts: (value: unknown) => boolean]> = {
  batch_size: ['an integer >= 1', isCount],
  epochs: ['an integer >= 1', isCount],
  learning_rate: ['a number from 0 to 1e38', (value) => isNumber(value, 0, 1e38)],
  schedule: [
    'constant, linear or cosine',
    (value) => ['constant', 'linear', 'cosine'].includes(value as string),
  ],
  warmup_ratio: ['a number from 0 to 1', (value) => isNumber(value, 0, 1)],
  assistant_turns: ['all or last', (value) => ['all', 'last'].includes(value as string)],
  packed_sequence_length: ['an integer >= 2', (value) => isCount(value) && value !== 1],
};

/** Fills defaults and rejects unknown fields and illegal values, naming every one of them. */
export function resolveSftSettings(config: SftConfig): SftSettings {
  return atTheDoor({ config }, () => {
    const given = Object.entries(config).filter(([, value]) => value !== undefined && value !== null);
    const faults = given.flatMap(([name, input]) => {
      const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof SftSettings] : undefined;
      if (!check)
        return fault(['config', name], 'unknown_field', `one of ${Object.keys(CHECKS).join(', ')}`, input);
      return check[1](input) ? [] : fault(['config', name], 'value', check[0], input);
    });
    throwFaults(faults);
    return { ...DEFAULTS, ...Object.fromEntries(given) } as SftSettings;
  });
}
