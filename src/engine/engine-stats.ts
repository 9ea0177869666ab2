/** The steps of an engine -> numbers about it. */
import type { StepResult } from '../backends/index.ts';
import type { Plan } from './scheduler.ts';

/** Numbers about one engine. */
export type EngineStats = {
  /** Sequences that run, and that wait. */
  readonly running: number;
  readonly waiting: number;
  /** Cells of the KV cache: in use by running sequences, cached for their prefix, and in all. */
  readonly kvTokensInUse: number;
  readonly kvTokensCached: number;
  readonly kvTokens: number;
  /** Since the engine was made. */
  readonly steps: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  /** Sampled per second over the last seconds of work. */
  readonly tokensPerSecond: number;
};

/** The numbers of several engines together. */
export function sumStats(stats: readonly EngineStats[]): EngineStats {
  const sum = (field: keyof EngineStats): number => stats.reduce((total, one) => total + one[field], 0);
  return {
    running: sum('running'),
    waiting: sum('waiting'),
    kvTokensInUse: sum('kvTokensInUse'),
    kvTokensCached: sum('kvTokensCached'),
    kvTokens: sum('kvTokens'),
    steps: sum('steps'),
    promptTokens: sum('promptTokens'),
    generatedTokens: sum('generatedTokens'),
    tokensPerSecond: sum('tokensPerSecond'),
  };
}

/** Share of the newest step in the smoothed rate. */
const RATE_SHARE = 0.1;

/** What the steps of an engine have computed so far. */
export class StepCounter {
  steps = 0;
  promptTokens = 0;
  generatedTokens = 0;
  tokensPerSecond = 0; // smoothed

  /** Counts a computed step. */
  add(plan: Plan, { samples }: StepResult, elapsedMs: number): void {
    let sampled = samples.forced?.ids.length ?? 0;
    for (const { start, sequence, count, samples: samplers } of plan.entries) {
      this.promptTokens += Math.max(0, Math.min(sequence.group.prompt.length, start + count) - start);
      sampled += samplers.length;
    }
    this.steps += 1;
    this.generatedTokens += sampled;
    this.tokensPerSecond +=
      RATE_SHARE * ((1000 * sampled) / Math.max(elapsedMs, 1e-3) - this.tokensPerSecond);
  }
}
