import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/engine/native/index.ts';
import { createRuntime } from '../../src/index.ts';
import { describeGguf, estimateMemory, loadGguf } from '../../src/models/formats/index.ts';
import { place } from '../../src/models/placement.ts';
import { ask } from '../answer/models.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';
import { whyNoDevice } from './device.ts';

const why = await whyNoDevice();
const because = why ? ` (skipped: ${why})` : '';
/** 200 take 20 s more. */
const ROUNDS = Number(process.env['PLACEMENTS'] ?? 40);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-placement-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(why)(`a model on a GPU of limited memory${because}`, () => {
  it(`never has more layers there than fit, mostly the most or one less: ${ROUNDS} random models, caches and sizes`, async () => {
    const next = randomNumbers(2026);
    const pick = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
    const lines: string[] = [];
    const files = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const file = path.join(folder, `${i}.gguf`);
        const isTied = pick(0, 1) === 1;
        const heads = pick(1, 6);
        const sizes = { layers: pick(2, 12), heads, kvHeads: heads, headSize: 64, width: 64 * heads };
        const others = { hidden: 64 * pick(2, 20), vocabularySize: 512 };
        await writeTinyModel(file, { architecture: 'qwen2', type: 'f16', isTied, ...sizes, ...others });
        return file;
      }),
    );
    const stopLog = loadAddon().setLog((_level, text) => void lines.push(text));
    /** Bytes that the engine allocates on the device. */
    const taken = async (load: () => Promise<void>): Promise<number> => {
      lines.length = 0;
      await load();
      await setTimeout(0); // log lines come through the event loop
      const sizes = lines.map(
        (line) => /Vulkan0 +(?:model|KV|compute) buffer size = +([0-9.]+) MiB/.exec(line)?.[1],
      );
      return sizes.reduce((sum, mib) => sum + Number(mib ?? 0) * 2 ** 20, 0);
    };
    const further: string[] = []; // where two more layers would have fit
    for (let round = 0; round < ROUNDS; round++) {
      const file = files[pick(0, files.length - 1)]!;
      const shape = await describeGguf({ path: file, gpu: 'vulkan' });
      const slotCount = pick(1, 8);
      const isKvUnified = pick(0, 1) === 1;
      const kvTokens = 256 * slotCount * pick(1, 8);
      const limits = {
        kvTokens,
        isKvUnified,
        slotCount,
        batchTokens: 64 * pick(1, 8),
        maxOutputs: 16,
        threads: 1,
      };
      const estimate = estimateMemory(shape, limits, { cacheType: 'f16', fusedAttention: true });
      const cacheOnGpu = pick(0, 3) > 0;
      const total = estimate.weights + estimate.cache + estimate.compute;
      const freeBytes = Math.round(1.4 * next() * total);
      const placement = place(shape, estimate, { cacheOnGpu, devices: [{ name: 'Vulkan0', freeBytes }] });
      const load = async (gpuLayers: number): Promise<number> =>
        taken(async () => {
          const devices = gpuLayers === 0 ? [] : ['Vulkan0'];
          const model = await loadGguf(
            { path: file, gpu: 'vulkan', gpuLayers, devices, cacheOnGpu, cacheType: 'f16' },
            shape,
          );
          const backend = await model.createBackend(limits);
          await backend.close();
          model.close();
        });
      const { gpuLayers, layers } = placement;
      const what = `${path.basename(file)}, ${gpuLayers} of ${layers} layers in ${freeBytes} bytes`;
      expect(await load(gpuLayers), what).toBeLessThanOrEqual(freeBytes);
      if (gpuLayers + 1 < layers && (await load(gpuLayers + 2)) <= 0.95 * freeBytes) further.push(what);
    }
    stopLog();
    expect(further.length / ROUNDS).toBeLessThan(0.15);
  });

  it('is on the device as a whole where it fits, and says so', async () => {
    const lines: string[] = [];
    await using runtime = await createRuntime({
      gpu: 'vulkan',
      home: folder,
      maxSequences: 8,
      log: (level, text) => void (level === 'info' && lines.push(text)),
    });
    await runtime.createCompletion(ask('What is the capital of Peru?', { max_tokens: 1 }));
    const [placement] = runtime.stats().placement;
    expect(placement).toMatchObject({ devices: ['Vulkan0'], cacheOnGpu: true, hostCacheBytes: 0 });
    expect(placement!.gpuLayers).toBe(placement!.layers);
    expect(lines.find((line) => line.startsWith('onpolicy-tiny:'))).toContain('layers on Vulkan0');
  });

  it.each([
    [{ devices: ['Vulkan7'] }, 'model.devices: expected names of GPUs (Vulkan0), got "Vulkan7"'],
    [{ mainGpu: 'CPU' }, 'model.mainGpu: expected names of GPUs (Vulkan0), got "CPU"'],
  ])('is refused for %j', async (options, message) => {
    await using runtime = await createRuntime({
      gpu: 'vulkan',
      home: folder,
      model: { path: 'onpolicy-tiny', ...options },
    });
    await expect(runtime.tokenize('a')).rejects.toMatchObject({ code: 'INVALID_REQUEST', message });
  });

  it('answers with its cache beside the processor', async () => {
    const model = { path: 'onpolicy-tiny', cacheOnGpu: false };
    await using runtime = await createRuntime({ gpu: 'vulkan', home: folder, model, maxSequences: 8 });
    const { choices } = await runtime.createCompletion(
      ask('What is the capital of Peru?', { max_tokens: 12 }),
    );
    expect(choices[0]!.message.content).toBe('The capital of Peru is Lima.');
    expect(runtime.stats().placement).toMatchObject([{ devices: ['Vulkan0'], cacheOnGpu: false }]);
  });
});
