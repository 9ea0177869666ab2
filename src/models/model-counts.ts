/** Counts of engines and encoders -> their sums, with those of unloaded models. */

import { sumStats } from '../engine/index.ts';
import type { EngineStats } from '../protocol/service/index.ts';
import { type MediaStats, sumMediaStats } from './media/index.ts';
import type { RunningModel } from './running-model.ts';

export class ModelCounts {
  #engines: EngineStats = sumStats([]);
  #media: MediaStats = sumMediaStats([]);

  /** Keeps the counts of a model that is being unloaded. */
  keep({ engine, media }: RunningModel): void {
    this.#engines = sumStats([this.#engines, totalsOf(engine.stats())]);
    if (!media) return;
    const { encodes } = media.cache.stats();
    this.#media = sumMediaStats([this.#media, { encodes, running: 0, cachedBytes: 0 }]);
  }

  engines(loaded: Iterable<RunningModel>): EngineStats {
    return sumStats([...Array.from(loaded, ({ engine }) => engine.stats()), this.#engines]);
  }

  media(loaded: Iterable<RunningModel>): MediaStats {
    const live = [...loaded].flatMap(({ media }) => (media ? [media.cache.stats()] : []));
    return sumMediaStats([...live, this.#media]);
  }
}

/** Returns the counts of an engine without gauges of its current use. */
function totalsOf(stats: EngineStats): EngineStats {
  const held = {
    running: 0,
    waiting: 0,
    kvTokensInUse: 0,
    kvTokensCached: 0,
    kvTokens: 0,
    tokensPerSecond: 0,
  };
  return { ...stats, ...held };
}
