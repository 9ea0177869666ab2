/** The loaded models of a runtime -> numbers about them. */
import { type EngineStats, sumStats } from './engine/index.ts';
import type { Models, Placement } from './models/index.ts';
import type { ProductKernels } from './native/index.ts';
import { cutMasks } from './structured/index.ts';

/** Statistics of a runtime. */
export type RuntimeStats = EngineStats & {
  /** Number of token masks in this process that lack tokens because they reached the work limit. */
  readonly cutMasks: number;
  /** Placement of the layers and the cache of each loaded model, by its path. */
  readonly placement: readonly ({ readonly model: string } & Placement)[];
  /** Matmul kernels of each loaded model, by its path: this library's for an instruction set, or `plain` for the engine's own. */
  readonly products: readonly { readonly model: string; readonly kernels: ProductKernels }[];
};

/** The numbers of now. */
export function runtimeStats(models: Models): RuntimeStats {
  const loaded = [...models.loaded()];
  return {
    ...models.stats(),
    cutMasks: cutMasks(),
    placement: loaded.map(({ path, placement }) => ({ model: path, ...placement })),
    products: loaded.map(({ path, loaded: { products } }) => ({ model: path, kernels: products })),
  };
}

/** The numbers of several runtimes together. */
export function sumRuntimeStats(all: readonly RuntimeStats[]): RuntimeStats {
  return {
    ...sumStats(all),
    cutMasks: all.reduce((sum, one) => sum + one.cutMasks, 0),
    placement: all.flatMap(({ placement }) => placement),
    products: all.flatMap(({ products }) => products),
  };
}
