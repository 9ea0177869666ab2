import { describe, expect, it } from 'vitest';
import type { Device } from '../../src/engine/native/index.ts';
import { estimateMemory, type LayerMemory, type ModelShape } from '../../src/models/formats/index.ts';
import { chosenDevices, place } from '../../src/models/placement.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';

const MIB = 2 ** 20;
const gpu = (name: string, freeMib: number): Device => ({
  name,
  description: '',
  kind: 'gpu',
  freeBytes: freeMib * MIB,
  totalBytes: freeMib * MIB,
});
const LAYER: LayerMemory = { keys: 512, values: 512, index: 0, isWindow: false, stateBytes: 0 };
const SHAPE: ModelShape = {
  vocabSize: 32_000,
  contextLength: 4096,
  embeddingSize: 1024,
  numbersPerRow: 14_000,
  numbersPerPair: 0,
  heads: 16,
  keySize: 64,
  valueSize: 64,
  slidingWindow: 0,
  layers: Array.from({ length: 8 }, () => LAYER),
  isRecurrent: false,
  takesBack: false,
  eagle: null,
  assistant: null,
  headLayers: [],
  pooling: null,
  isCausal: true,
  fusesAttention: true,
  blockHeads: 0,
  pooled: null,
  selectsBlocks: false,
  isF32: false,
  experts: null,
  isQuantized: true,
  blockBytes: Array<number>(8).fill(100 * MIB),
  expertBytes: Array<number>(8).fill(60 * MIB),
  largestExpertBytes: 20 * MIB,
  inputBytes: 60 * MIB,
  otherBytes: 80 * MIB,
};
const ESTIMATE = {
  weights: 940 * MIB,
  cache: 80 * MIB,
  caches: Array<number>(8).fill(10 * MIB),
  compute: 30 * MIB,
};

describe('layers that fit', () => {
  // Room: 95 % of what is free, less 40 MiB to compute with, and 110 of copies with layers or caches on the CPU. The output takes
  // 80 MiB, a layer 100 and 10 of cache.
  it.each([
    ['all', [gpu('a', 1100)], {}, { gpuLayers: 9, hostCacheBytes: 0, deviceBytes: 990 * MIB }],
    ['some', [gpu('a', 600)], {}, { gpuLayers: 4, hostCacheBytes: 50 * MIB, deviceBytes: 550 * MIB }],
    [
      'more without their cache',
      [gpu('a', 680)],
      { cacheOnGpu: false },
      { gpuLayers: 5, hostCacheBytes: 80 * MIB },
    ],
    ['the output alone', [gpu('a', 250)], {}, { gpuLayers: 1, hostCacheBytes: 80 * MIB }],
    ['none', [gpu('a', 220)], {}, { gpuLayers: 0, devices: [], deviceBytes: 0, hostCacheBytes: 80 * MIB }],
    ['on two GPUs', [gpu('a', 600), gpu('b', 400)], {}, { gpuLayers: 6, devices: ['a', 'b'] }],
    ['on no GPU', [], {}, { gpuLayers: 0, devices: [] }],
    ['as many as were asked for', [gpu('a', 100)], { wanted: 3 }, { gpuLayers: 3, deviceBytes: 440 * MIB }],
    ['at most all', [gpu('a', 2000)], { wanted: 99 }, { gpuLayers: 9, layers: 9 }],
    // Their weights take 40 MiB without experts, and one tensor is copied.
    [
      'all without experts',
      [gpu('a', 580)],
      { cpuExpertLayers: Infinity },
      { gpuLayers: 9, cpuExpertLayers: 8, deviceBytes: 530 * MIB, hostWeightBytes: 540 * MIB },
    ],
    [
      'all, some without experts',
      [gpu('a', 1000)],
      { cpuExpertLayers: 3 },
      { gpuLayers: 9, cpuExpertLayers: 3, deviceBytes: 830 * MIB, hostWeightBytes: 240 * MIB },
    ],
    [
      'some, with the experts of the last ones',
      [gpu('a', 100)],
      { wanted: 6, cpuExpertLayers: 5 },
      { gpuLayers: 6, cpuExpertLayers: 2, deviceBytes: 650 * MIB, hostWeightBytes: 480 * MIB },
    ],
    ['none, with experts in memory all the same', [], { cpuExpertLayers: 3 }, { cpuExpertLayers: 0 }],
  ] as const)('%s', (_, devices, options, expected) => {
    expect(place(SHAPE, ESTIMATE, { devices, ...options })).toMatchObject(expected);
  });

  it('are the most that fit: 200 random models, caches and devices', () => {
    const next = randomNumbers(28);
    const pick = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
    for (let round = 0; round < 200; round++) {
      const layers = pick(1, 80);
      const shape: ModelShape = {
        ...SHAPE,
        layers: Array.from({ length: layers }, () =>
          pick(0, 9) === 0 ? { ...LAYER, keys: 0, values: 0, stateBytes: MIB } : LAYER,
        ),
        blockBytes: Array.from({ length: layers }, () => pick(1, 400) * MIB),
        expertBytes: Array.from({ length: layers }, () => pick(0, 1) * MIB),
        largestExpertBytes: MIB,
        inputBytes: pick(1, 500) * MIB,
        otherBytes: pick(0, 1) * pick(300, 500) * MIB,
        vocabSize: pick(1000, 200_000),
      };
      const slotCount = pick(1, 40);
      const limits = { kvTokens: 256 * slotCount * pick(1, 16), isKvUnified: pick(0, 1) === 1, slotCount };
      const estimate = estimateMemory(
        shape,
        { ...limits, batchTokens: 512, maxOutputs: 64, threads: 1 },
        { cacheType: 'f16', fusedAttention: true },
      );
      const devices = Array.from({ length: pick(1, 3) }, (_, i) => gpu(`${i}`, pick(10, 24_000)));
      const cpuExpertLayers = pick(0, 2) * pick(1, layers);
      const placed = (wanted: number | 'auto') =>
        place(shape, estimate, { wanted, cpuExpertLayers, devices });
      const free = devices.reduce((sum, { freeBytes }) => sum + freeBytes, 0);
      const found = placed('auto');
      expect(found.deviceBytes).toBeLessThanOrEqual(0.95 * free);
      // With one more, what is on the devices and the margins for errors are more than those with room have.
      const margins = devices.length * (estimate.compute / 3 + 1) + 0.05 * free;
      const unused = devices.reduce(
        (sum, { name, freeBytes }) => sum + (found.devices.includes(name) ? 0 : freeBytes),
        0,
      );
      if (found.gpuLayers <= layers)
        expect(placed(found.gpuLayers + 1).deviceBytes + margins + unused).toBeGreaterThan(free);
    }
  });
});

describe('chosen GPUs', () => {
  const all = [gpu('a', 1), { ...gpu('cpu', 1), kind: 'cpu' as const }, gpu('b', 1)];
  it.each([
    [{}, ['a', 'b']],
    [{ devices: ['b'] }, ['b']],
    [{ mainGpu: 'b' }, ['b']],
    [{ devices: ['b', 'a'], tensorSplit: [3, 1] }, ['b', 'a']],
  ])('of %j', (options, names) => {
    expect(chosenDevices({ path: '', ...options }, all).map(({ name }) => name)).toEqual(names);
  });

  it.each([
    [{ devices: ['c'] }, 'model.devices: expected names of GPUs (a, b), got "c"'],
    [{ mainGpu: 'cpu' }, 'model.mainGpu: expected names of GPUs (a, b), got "cpu"'],
    [{ tensorSplit: [1] }, 'model.tensorSplit: expected 2 shares, one for each GPU, got 1'],
  ])('not of %j', (options, message) => {
    expect(() => chosenDevices({ path: '', ...options }, all)).toThrow(message);
  });
});
