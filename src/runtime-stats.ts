/** The loaded models of a runtime -> numbers about them. */
import { type CacheFileStats, sumCacheFileStats } from './disk-cache/index.ts';
import { type EngineStats, sumStats } from './engine/index.ts';
import type { Models, Placement } from './models/index.ts';
import type { Kernels } from './native/index.ts';
import { cutMasks } from './structured/index.ts';

/** Statistics of a runtime. */
export type RuntimeStats = EngineStats & {
  /** Number of token masks in this process that lack tokens because they reached the work limit. */
  readonly cutMasks: number;
  /** Tokens of prompts that came from the disk and went there since the runtime was made, and their bytes. */
  readonly diskCache: CacheFileStats;
  /** Placement of the layers and the cache of each loaded model, by its path. */
  readonly placement: readonly ({ readonly model: string } & Placement)[];
  /** Matmul kernels of each loaded model, by its path: this library's for an instruction set, or `plain` for the engine's own. */
  readonly kernels: readonly { readonly model: string; readonly kernels: Kernels }[];
  /** CPU threads of each loaded model's last step, by its path: as many as pay, see `threads` of a model. */
  readonly threads: readonly { readonly model: string; readonly threads: number }[];
  /** Former name of `kernels`, kept in this release. */
  readonly products: RuntimeStats['kernels'];
};

export function runtimeStats(models: Models): RuntimeStats {
  const loaded = [...models.loaded()];
  const kernels = loaded.map(({ path, loaded: model }) => ({ model: path, kernels: model.kernels }));
  return {
    ...models.stats(),
    cutMasks: cutMasks(),
    diskCache: models.diskCache,
    placement: loaded.map(({ path, placement }) => ({ model: path, ...placement })),
    kernels,
    threads: loaded.map(({ path, engine }) => ({ model: path, threads: engine.threads })),
    products: kernels,
  };
}

/** The numbers of several runtimes together. */
export function sumRuntimeStats(all: readonly RuntimeStats[]): RuntimeStats {
  const kernels = all.flatMap((one) => one.kernels);
  return {
    ...sumStats(all),
    cutMasks: all.reduce((sum, one) => sum + one.cutMasks, 0),
    diskCache: sumCacheFileStats(all.map(({ diskCache }) => diskCache)),
    placement: all.flatMap(({ placement }) => placement),
    kernels,
    threads: all.flatMap(({ threads }) => threads),
    products: kernels,
  };
}
