/** What engines and encoders of models counted -> the sums, those of models that were unloaded included. */
import { type EngineStats, sumStats } from '../engine/index.ts';
import { type MediaStats, sumMediaStats } from '../media/index.ts';
import type { RunningModel } from './running-model.ts';

export class ModelCounts {
  #engines: EngineStats = sumStats([]);
  #media: MediaStats = sumMediaStats([]);

  /** Keeps those of a model that was unloaded. */
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

/** What an engine has counted, without what it held. */
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
