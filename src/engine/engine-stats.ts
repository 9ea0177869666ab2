/** The steps of an engine -> its statistics: counts, and how long its sequences waited for their start and for each token. */
import { Histogram, sumHistograms } from '../common/index.ts';
import type { EngineCount, EngineStats, EngineTimings } from '../protocol/service/index.ts';
import type { Plan } from './plan.ts';
import type { Sequence } from './sequence.ts';

const WAITS_S = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;
const GAPS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5] as const;
const TOKENS = [0, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144] as const;

const BOUNDS: Readonly<Record<keyof EngineTimings, readonly number[]>> = {
  queueSeconds: WAITS_S,
  firstTokenSeconds: WAITS_S,
  betweenTokensSeconds: GAPS_S,
  promptTokens: TOKENS,
  cachedPromptTokens: TOKENS,
};

/** The timings of several engines together. */
export function sumTimings(timings: readonly EngineTimings[]): EngineTimings {
  return each((name, bounds) =>
    sumHistograms(
      timings.map((one) => one[name]),
      bounds,
    ),
  );
}

function each<T>(
  make: (name: keyof EngineTimings, bounds: readonly number[]) => T,
): Record<keyof EngineTimings, T> {
  const entries = Object.entries(BOUNDS) as [keyof EngineTimings, readonly number[]][];
  return Object.fromEntries(entries.map(([name, bounds]) => [name, make(name, bounds)])) as Record<
    keyof EngineTimings,
    T
  >;
}

/** Counts for one engine. */
export class StepTimings {
  readonly #histograms = each((_, bounds) => new Histogram(bounds));

  /** Counts a step whose tokens were delivered. */
  add({ entries }: Plan, startMs: number, endMs: number): void {
    for (const { sequence, samples } of entries) {
      this.#begin(sequence, startMs);
      for (const sampled of samples) {
        this.#begin(sampled, startMs);
        this.#count(sampled, endMs);
      }
    }
  }

  /** A copy of what was counted. */
  data(): EngineTimings {
    return each((name) => this.#histograms[name].data());
  }

  #begin({ times }: Sequence, startMs: number): void {
    if (times.hasStarted) return;
    times.hasStarted = true;
    times.startedMs = startMs;
    this.#histograms.queueSeconds.add(Math.max(0, startMs - times.submittedMs) / 1000);
  }

  #count(sequence: Sequence, endMs: number): void {
    const { times, outputCount, group } = sequence;
    const tokens = outputCount - times.counted;
    if (tokens <= 0) return;
    const { firstTokenSeconds, betweenTokensSeconds, promptTokens, cachedPromptTokens } = this.#histograms;
    if (times.firstTokenMs === 0) times.firstTokenMs = endMs;
    if (times.counted === 0) {
      firstTokenSeconds.add((endMs - times.submittedMs) / 1000);
      promptTokens.add(group.prompt.length);
      cachedPromptTokens.add(Math.max(0, sequence.place.cachedTokens));
    } else betweenTokensSeconds.add((endMs - times.lastTokenMs) / 1000 / tokens, tokens);
    times.counted = outputCount;
    times.lastTokenMs = endMs;
  }
}

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
