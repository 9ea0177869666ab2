/** Models with the option `cpuExpertLayers`, on a GPU -> the memory that their placement says, and the answers of the CPU. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/engine/native/index.ts';
import { createRuntime, type TextCompletion } from '../../src/index.ts';
import { describeGguf, estimateMemory, loadGguf } from '../../src/models/formats/index.ts';
import { place } from '../../src/models/placement.ts';
import { architectureFiles } from '../architectures/files.ts';
import { largestDistance, whyNoDevice } from './device.ts';

const why = await whyNoDevice();
const because = why ? ` (skipped: ${why})` : '';
/** Experts with biases, with two matrices in one tensor, behind a dense layer, beside states, and of two kinds. */
const NAMES = ['qwen3moe', 'gpt-oss', 'gemma4-moe', 'deepseek2', 'qwen35moe', 'grovemoe'];
const MIB = 2 ** 20;
const TOLERANCE = 2e-2; // of a log-probability: a GPU multiplies many tokens at once in 16 bits
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-cpu-experts-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(why)(`experts in main memory${because}`, () => {
  const files = why ? {} : architectureFiles(NAMES);

  /** Bytes that the engine's log says of buffers: weights in main memory and on the device, all on the device. */
  async function measured(load: () => Promise<void>): Promise<Record<'host' | 'weights' | 'device', number>> {
    const lines: string[] = [];
    const stopLog = loadAddon().setLog((_level, text) => void lines.push(text));
    await load();
    await setTimeout(0); // log lines come through the event loop
    stopLog();
    const sumOf = (what: string): number => {
      const pattern = new RegExp(`${what} buffer size = +([0-9.]+) MiB`);
      return lines.reduce((sum, line) => sum + Number(pattern.exec(line)?.[1] ?? 0) * MIB, 0);
    };
    return {
      host: sumOf('(?:CPU|Vulkan_Host) +model'),
      weights: sumOf('Vulkan0 +model'),
      device: sumOf('Vulkan0 +(?:model|KV|RS|compute)'),
    };
  }

  describe.each(NAMES)('of %s', (name) => {
    // With few tokens in a step, the copy of an expert's tensor is most of what it computes with.
    it.each([
      [1, 99, 32],
      [2, 99, 256],
      [Infinity, 99, 32],
      [Infinity, 99, 256],
      [Infinity, 3, 32],
      [0, 99, 32],
    ])(
      'take what is predicted: of %d layers with %d on the GPU, %d tokens in a step',
      async (cpuExpertLayers, wanted, batchTokens) => {
        const file = files[name]!;
        const shape = await describeGguf({ path: file, gpu: 'vulkan' });
        const limits = {
          kvTokens: 512,
          isKvUnified: true,
          slotCount: 2,
          batchTokens,
          maxOutputs: 16,
          threads: 1,
        };
        const estimate = estimateMemory(shape, limits, { cacheType: 'f16', fusedAttention: true });
        const devices = [{ name: 'Vulkan0', freeBytes: 2 ** 30 }];
        const placement = place(shape, estimate, { wanted, cpuExpertLayers, devices });
        const { gpuLayers, deviceBytes, hostWeightBytes } = placement;
        const options = { gpuLayers, cpuExpertLayers, devices: placement.devices } as const;
        const found = await measured(async () => {
          const model = await loadGguf(
            { path: file, gpu: 'vulkan', cacheType: 'f16', mmap: false, ...options },
            shape,
          );
          const backend = await model.createBackend(limits);
          await backend.close();
          await model.close();
        });
        const rounding = 0.02 * MIB; // the log says hundredths, and tensors are aligned
        expect(Math.abs(found.host - hostWeightBytes)).toBeLessThan(rounding);
        const isTied = shape.otherBytes < 0.5 * shape.inputBytes; // then the embeddings are copied to the device
        const weights = estimate.weights + (isTied ? shape.inputBytes : 0) - hostWeightBytes;
        expect(Math.abs(found.weights - weights)).toBeLessThan(rounding);
        expect(found.device).toBeLessThan(1.02 * deviceBytes);
        if (wanted === 99 && batchTokens === 32) expect(found.device).toBeGreaterThan(0.85 * deviceBytes);
      },
    );
  });

  // In steps of 32 tokens or more the engine copies experts to the device and computes there.
  it.each(['qwen3moe', 'gpt-oss'])(
    'answer as those of the CPU do, after prompts of 5 and of 60 tokens: %s',
    async (name) => {
      const prompts = [5, 60].map((length) => Array.from({ length }, (_, i) => 97 + ((i * 7 + i * i) % 26)));
      const answers: TextCompletion[][] = [];
      for (const [gpu, cpuExpertLayers] of [
        [false, 0],
        ['vulkan', 'all'],
      ] as const) {
        await using runtime = await createRuntime({
          model: { path: files[name]!, cpuExpertLayers, kernels: 'plain' },
          gpu,
          home: path.join(folder, `${cpuExpertLayers}`),
          threads: 1,
          contextSize: 256,
        });
        const request = {
          max_tokens: 4,
          temperature: 0,
          ignore_eos: true,
          logprobs: 0,
          return_token_ids: true,
        } as const;
        answers.push(
          await Promise.all(prompts.map((prompt) => runtime.createTextCompletion({ ...request, prompt }))),
        );
        const [placement] = runtime.stats().placement;
        expect(placement!.cpuExpertLayers).toBe(gpu ? 4 : 0);
        expect(placement!.gpuLayers).toBe(gpu ? placement!.layers : 0);
      }
      const [wanted, found] = answers as [TextCompletion[], TextCompletion[]];
      const ids = (of: TextCompletion[]) => of.map(({ choices }) => choices[0]!.token_ids);
      const logprobs = (of: TextCompletion[]) =>
        of.flatMap(({ choices }) => choices[0]!.logprobs!.token_logprobs as number[]);
      expect(ids(found)).toEqual(ids(wanted));
      expect(largestDistance(logprobs(found), logprobs(wanted))).toBeLessThan(TOLERANCE);
    },
  );
});
