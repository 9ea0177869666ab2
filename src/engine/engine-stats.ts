/** The steps of an engine -> numbers about it. */
import type { Plan } from './plan.ts';
import { type EngineTimings, sumTimings } from './timings.ts';

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
  /** Drafts that had a row of their own, and those of them that were sampled. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** Sampled per second over the last seconds of work. */
  readonly tokensPerSecond: number;
  /** How long requests waited, and how long their prompts are. */
  readonly timings: EngineTimings;
};

/** Those that are one number. */
export type EngineCount = Exclude<keyof EngineStats, 'timings'>;

/** The numbers of several engines together. */
export function sumStats(stats: readonly EngineStats[]): EngineStats {
  const sum = (field: EngineCount): number => stats.reduce((total, one) => total + one[field], 0);
  return {
    running: sum('running'),
    waiting: sum('waiting'),
    kvTokensInUse: sum('kvTokensInUse'),
    kvTokensCached: sum('kvTokensCached'),
    kvTokens: sum('kvTokens'),
    steps: sum('steps'),
    promptTokens: sum('promptTokens'),
    generatedTokens: sum('generatedTokens'),
    draftedTokens: sum('draftedTokens'),
    acceptedTokens: sum('acceptedTokens'),
    tokensPerSecond: sum('tokensPerSecond'),
    timings: sumTimings(stats.map(({ timings }) => timings)),
  };
}

/** Share of the newest step in the smoothed rate. */
const RATE_SHARE = 0.1;

/** What the steps of an engine have computed so far. */
export class StepCounter {
  steps = 0;
  promptTokens = 0;
  generatedTokens = 0;
  draftedTokens = 0;
  acceptedTokens = 0;
  tokensPerSecond = 0; // smoothed

  /** Counts a step that was computed, and the tokens that came of it. */
  add(plan: Plan, tokens: number, elapsedMs: number): void {
    for (const { start, sequence, count, drafts } of plan.entries) {
      this.promptTokens += Math.max(0, Math.min(sequence.group.prompt.length, start + count) - start);
      if (drafts.length === 0) continue;
      this.draftedTokens += drafts.length;
      this.acceptedTokens += sequence.computed - start - count;
    }
    this.steps += 1;
    this.generatedTokens += tokens;
    this.tokensPerSecond += RATE_SHARE * ((1000 * tokens) / Math.max(elapsedMs, 1e-3) - this.tokensPerSecond);
  }
}
