/** A model's shape and load options -> an error that names the setting that makes `deterministic` impossible. */

import { errorAt } from '../errors.ts';
import type { CacheType, ModelOptions } from '../protocol/index.ts';
import { type ModelShape, OWN_CELLS } from './formats/index.ts';
import { kernelsOf } from './serving-options.ts';

type Facts = {
  readonly shape: Pick<ModelShape, 'slidingWindow'>;
  readonly options: ModelOptions;
  readonly cacheType: CacheType;
  readonly mmproj: string | null;
  readonly gpuLayers: number;
};

/** Fails with `UNSUPPORTED`. Properties that depend on single operations of the model are checked when its context is created. */
export function requireDeterministic({ shape, options, cacheType, mmproj, gpuLayers }: Facts): void {
  if (gpuLayers > 0) refuse('model.gpuLayers', '0', String(gpuLayers));
  if (mmproj !== null) refuse('model.mmproj', 'null', mmproj);
  if (kernelsOf(options) === 'plain') refuse('model.kernels', 'auto', 'plain');
  if (shape.slidingWindow > 0 && options.slidingWindow === 'window')
    refuse('model.slidingWindow', 'full', 'window');
  if (options.fusedAttention === false) refuse('model.fusedAttention', 'true', 'false');
  if (!OWN_CELLS.includes(cacheType)) refuse('model.cacheType', OWN_CELLS.join(' or '), cacheType);
}

function refuse(param: string, expected: string, got: string): never {
  throw errorAt(param, 'UNSUPPORTED', `expected ${expected} with deterministic, got ${got}`);
}
