/** Sizes of a model and free memory of GPUs -> how many of its layers each GPU gets. Never more than fit by the estimate. */

import { mib } from '../common/index.ts';
import type { Device } from '../engine/native/index.ts';
import { errorAt } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { type MemoryEstimate, type ModelShape, weightBytes } from './formats/index.ts';

/** Placement of a model on GPUs and the CPU. */
export type Placement = {
  /** Names of the GPUs that have layers. Empty if the CPU computes everything. */
  readonly devices: readonly string[];
  /** Number of layers on them; the output layer counts as one. */
  readonly gpuLayers: number;
  /** Total number of layers. */
  readonly layers: number;
  /** Number of these layers whose experts are in main memory. */
  readonly cpuExpertLayers: number;
  /** True if the KV cache of these layers is on the GPUs too. */
  readonly cacheOnGpu: boolean;
  /** Bytes on GPUs, estimated from the file. */
  readonly deviceBytes: number;
  /** Bytes of the KV cache in main memory. */
  readonly hostCacheBytes: number;
  /** Bytes of the weights in main memory. */
  readonly hostWeightBytes: number;
};

/** Share of each GPU that stays free, for its driver and gaps between allocations. */
const MARGIN_SHARE = 0.05;
/** The estimate of a step's buffers may be too low by a quarter. */
const COMPUTE_ERROR = 4 / 3;
/** If a file's other weights are smaller than this share of its embeddings, it has no output matrix: the engine copies the embeddings. */
const TIED_SHARE = 0.5;

export function onCpu(shape: ModelShape | null, cache: number): Placement {
  const layers = (shape?.blockBytes.length ?? 0) + 1;
  return {
    devices: [],
    gpuLayers: 0,
    layers,
    cpuExpertLayers: 0,
    cacheOnGpu: false,
    deviceBytes: 0,
    hostCacheBytes: cache,
    hostWeightBytes: shape ? weightBytes(shape) : 0,
  };
}

/** Returns the GPUs that a model's options name. @throws OnpolicyError `INVALID_REQUEST` for an unknown name */
export function chosenDevices(
  { devices: names, mainGpu, tensorSplit }: ModelOptions,
  all: readonly Device[],
): readonly Device[] {
  const gpus = all.filter(({ kind }) => kind === 'gpu');
  const there = gpus.map(({ name }) => name).join(', ') || 'none';
  const named = mainGpu === undefined ? names : [mainGpu];
  const chosen = (named ?? gpus.map(({ name }) => name)).map((name) => {
    const found = gpus.find((device) => device.name === name);
    if (found) return found;
    const param = mainGpu === undefined ? 'model.devices' : 'model.mainGpu';
    throw errorAt(param, 'INVALID_REQUEST', `expected names of GPUs (${there}), got "${name}"`);
  });
  if (tensorSplit && chosen.length > 0 && tensorSplit.length !== chosen.length)
    throw errorAt(
      'model.tensorSplit',
      'INVALID_REQUEST',
      `expected ${chosen.length} shares, one for each GPU, got ${tensorSplit.length}`,
    );
  return chosen;
}

/**
 * Places a model on GPUs. With `wanted` absent or `auto`, places as many layers as fit, else that many. The experts of the first
 * `cpuExpertLayers` layers stay in main memory.
 */
export function place(
  shape: ModelShape,
  estimate: Pick<MemoryEstimate, 'cache' | 'caches' | 'compute'>,
  {
    wanted = 'auto',
    cacheOnGpu = true,
    cpuExpertLayers = 0,
    devices,
  }: {
    readonly wanted?: number | 'auto' | undefined;
    readonly cacheOnGpu?: boolean | undefined;
    readonly cpuExpertLayers?: number;
    readonly devices: readonly Pick<Device, 'name' | 'freeBytes'>[];
  },
): Placement {
  const layers = shape.blockBytes.length + 1;
  const { caches } = estimate;
  const kept = shape.expertBytes.map((size, block) => (block < cpuExpertLayers ? size : 0));
  const moved = shape.blockBytes.map((size, block) => size - kept[block]!);
  // For many tokens the engine copies the weights and cache of CPU layers to the GPU, and computes there.
  const copies = Math.max(0, ...shape.blockBytes) + Math.max(0, ...caches);
  const expertCopies = kept.some((size) => size > 0) ? shape.largestExpertBytes : 0; // one tensor after the other
  const roomBeside = (buffers: number): number =>
    devices.reduce((sum, { freeBytes }) => sum + Math.max(0, (1 - MARGIN_SHARE) * freeBytes - buffers), 0);
  const compute = COMPUTE_ERROR * estimate.compute;
  const whole = outputBytes(shape) + moved.reduce((sum, size) => sum + size, estimate.cache);
  const isWhole =
    cacheOnGpu && (wanted === 'auto' ? whole <= roomBeside(compute + expertCopies) : wanted >= layers);
  const copied = isWhole ? expertCopies : copies;
  const buffers = compute + copied;
  const room = roomBeside(buffers);
  const used = devices.filter(
    ({ freeBytes }) => wanted !== 'auto' || (1 - MARGIN_SHARE) * freeBytes > buffers,
  );
  // The engine places the output first, then layers from the last one backwards.
  let gpuLayers = 0;
  let weightsThere = 0;
  let cacheThere = 0;
  const most = wanted === 'auto' ? layers : Math.min(wanted, layers);
  while (gpuLayers < most) {
    const block = layers - 1 - gpuLayers;
    const cache = gpuLayers > 0 && cacheOnGpu ? caches[block]! : 0;
    const weights = gpuLayers === 0 ? outputBytes(shape) : moved[block]!;
    if (wanted === 'auto' && weightsThere + cacheThere + weights + cache > room) break;
    weightsThere += weights;
    cacheThere += cache;
    gpuLayers++;
  }
  if (gpuLayers === 0) return onCpu(shape, estimate.cache);
  return {
    devices: used.map(({ name }) => name),
    gpuLayers,
    layers,
    cpuExpertLayers: kept.slice(layers - gpuLayers).filter((size) => size > 0).length,
    cacheOnGpu,
    deviceBytes: weightsThere + cacheThere + used.length * (estimate.compute + copied),
    hostCacheBytes: estimate.cache - cacheThere,
    hostWeightBytes: weightBytes(shape) + (outputBytes(shape) - shape.otherBytes) - weightsThere,
  };
}

function outputBytes({ inputBytes, otherBytes }: ModelShape): number {
  return otherBytes + (otherBytes < TIED_SHARE * inputBytes ? inputBytes : 0);
}

export function describePlacement(
  name: string,
  { devices, gpuLayers, layers, cpuExpertLayers, cacheOnGpu, deviceBytes }: Placement,
): string {
  if (gpuLayers === 0) return `${name}: on the CPU`;
  const experts = cpuExpertLayers === 0 ? '' : `, experts of ${cpuExpertLayers} of them on the CPU`;
  return `${name}: ${gpuLayers} of ${layers} layers on ${devices.join(', ')} (${mib(deviceBytes)})${experts}, the cache ${cacheOnGpu ? 'with them' : 'on the CPU'}`;
}
