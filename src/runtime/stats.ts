/** The loaded models of a runtime -> their statistics. */

import { sumStats } from '../engine/index.ts';
import { type EngineReport, engineReport, joinEngineReports, type Kernels } from '../engine/native/index.ts';
import type { ModelMemory, Placement } from '../models/index.ts';
import { type CacheFileStats, sumCacheFileStats } from '../models/prompt-files/index.ts';
import type { EngineStats } from '../protocol/service/index.ts';

/** Statistics of a runtime. */
export type RuntimeStats = EngineStats & {
  /** Number of token masks in this process that lack tokens because they reached the work limit. */
  readonly cutMasks: number;
  /** Prompt tokens and bytes that were read from the disk cache and written to it since the runtime was created. */
  readonly diskCache: CacheFileStats;
  /** Placement of the layers and the cache of each loaded model, by its path. */
  readonly placement: readonly ({ readonly model: string } & Placement)[];
  /**
   * Kernels of each loaded model, by its path: this library's for an instruction set, or `plain` for the engine's own. `attention`: those of
   * the first pass; null before it.
   */
  readonly kernels: readonly {
    readonly model: string;
    readonly kernels: Kernels;
    readonly attention: Kernels | null;
  }[];
  /** The engine's release, and what is off with it. Null before the engine's libraries are open. */
  readonly engine: EngineReport | null;
  /** CPU threads of each loaded model's last step, by its path. The number adapts to the load of other programs, see `threads` of a model. */
  readonly threads: readonly { readonly model: string; readonly threads: number }[];
  /** Former name of `kernels`, kept in this release. */
  readonly products: RuntimeStats['kernels'];
};

export function runtimeStats(models: ModelMemory): RuntimeStats {
  const loaded = [...models.loaded()];
  const kernels = loaded.map(({ path, loaded: model }) => ({
    model: path,
    kernels: model.kernels,
    attention: model.attention,
  }));
  return {
    ...models.stats(),
    diskCache: models.diskCache,
    placement: loaded.map(({ path, placement }) => ({ model: path, ...placement })),
    kernels,
    engine: engineReport(),
    threads: loaded.map(({ path, engine }) => ({ model: path, threads: engine.threads })),
    products: kernels,
  };
}

/** Returns the statistics of several runtimes together. */
export function sumRuntimeStats(all: readonly RuntimeStats[]): RuntimeStats {
  const kernels = all.flatMap((one) => one.kernels);
  return {
    ...sumStats(all),
    cutMasks: all.reduce((sum, one) => sum + one.cutMasks, 0),
    diskCache: sumCacheFileStats(all.map(({ diskCache }) => diskCache)),
    placement: all.flatMap(({ placement }) => placement),
    kernels,
    engine: joinEngineReports(all.map(({ engine }) => engine)),
    threads: all.flatMap(({ threads }) => threads),
    products: kernels,
  };
}
