/** The steps of an engine -> its statistics. */

import type { EngineCount, EngineStats } from '../protocol/service/index.ts';
import type { Plan } from './plan.ts';
import { sumTimings } from './timings.ts';

/** Returns the combined statistics of several engines. */
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

/** Counts the work of an engine's steps. */
export class StepCounter {
  steps = 0;
  promptTokens = 0;
  generatedTokens = 0;
  draftedTokens = 0;
  acceptedTokens = 0;
  tokensPerSecond = 0; // smoothed

  /** Counts a computed step and the tokens that it delivered. */
  add(plan: Plan, tokens: number, elapsedMs: number): void {
    for (const { start, sequence, count, drafts } of plan.entries) {
      this.promptTokens += Math.max(0, Math.min(sequence.group.prompt.length, start + count) - start);
      if (drafts.length === 0) continue;
      this.draftedTokens += drafts.length;
      this.acceptedTokens += sequence.place.computed - start - count;
    }
    this.steps += 1;
    this.generatedTokens += tokens;
    this.tokensPerSecond += RATE_SHARE * ((1000 * tokens) / Math.max(elapsedMs, 1e-3) - this.tokensPerSecond);
  }
}
