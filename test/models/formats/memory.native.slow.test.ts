/** The header of a file -> the bytes that the engine then allocates, as its log says them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../../src/engine/native/index.ts';
import { describeGguf, estimateMemory, loadGguf } from '../../../src/models/formats/index.ts';
import type { CacheType } from '../../../src/protocol/index.ts';
import { writeTinyModel } from '../../rl/tiny-model.ts';

const EMBEDDED = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-memory-'));
const lines: string[] = [];
let stopLog: () => void;
beforeAll(async () => {
  await describeGguf({ path: EMBEDDED, gpu: false });
  stopLog = loadAddon().setLog((_level, text) => void lines.push(text));
});
afterAll(() => {
  stopLog();
  fs.rmSync(folder, { recursive: true });
});

/** Bytes that the log says of each buffer of a kind. */
const buffers = (kind: string): number[] =>
  lines
    .map((line) => new RegExp(`${kind} buffer size = +([0-9.]+) MiB`).exec(line)?.[1])
    .filter((mib) => mib !== undefined)
    .map((mib) => Number(mib) * 2 ** 20);
const logged = (kind: string): number => buffers(kind).reduce((sum, bytes) => sum + bytes, 0);
/** Lines of the log come through the event loop, on a busy machine later than the next turn: those of the load may come after it. */
const lastLogged = (kind: string): number => buffers(kind).at(-1) ?? 0;

describe('estimateMemory', () => {
  it.each<[number, boolean, number, number, boolean, CacheType]>([
    [4096, true, 512, 20, true, 'f16'],
    [4096, true, 512, 20, false, 'f16'],
    [32_768, true, 512, 80, true, 'f16'],
    [8192, false, 512, 20, true, 'f16'],
    [4096, true, 512, 20, false, 'f32'],
    [8192, false, 512, 20, true, 'q8_0'],
    [4096, true, 512, 20, true, 'q4_0'],
  ])(
    '%i tokens, unified %s, %i a step, %i slots, fused %s, %s',
    async (kvTokens, isKvUnified, batchTokens, slotCount, fusedAttention, cacheType) => {
      const shape = await describeGguf({ path: EMBEDDED, gpu: false });
      const limits = { kvTokens, isKvUnified, batchTokens, slotCount, maxOutputs: 36, threads: 1 };
      const estimate = estimateMemory(shape, limits, { cacheType, fusedAttention });
      const model = await loadGguf({ path: EMBEDDED, gpu: false, fusedAttention, cacheType }, shape);
      lines.length = 0;
      const backend = await model.createBackend(limits);
      await expect.poll(() => Math.abs(estimate.cache - lastLogged('KV'))).toBeLessThan(2 ** 14);
      await backend.close();
      model.close();
      const ratio = (): number => estimate.compute / lastLogged('compute');
      await expect.poll(ratio).toBeLessThan(1.35);
      expect(ratio()).toBeGreaterThan(0.75);
    },
  );

  it.each([true, false])(
    'a model with a sliding window, its cache as long as the others: %s',
    async (isWindowCacheFull) => {
      const file = path.join(folder, 'window.gguf');
      const sizes = { width: 64, hidden: 64, heads: 2, kvHeads: 1, headSize: 32, layers: 6 };
      await writeTinyModel(file, { architecture: 'gemma3', type: 'f32', ...sizes });
      const shape = await describeGguf({ path: file, gpu: false });
      const limits = {
        kvTokens: 8192,
        isKvUnified: false,
        batchTokens: 64,
        slotCount: 4,
        maxOutputs: 4,
        threads: 1,
      };
      const all = { ...limits, isWindowCacheFull };
      const model = await loadGguf({ path: file, gpu: false, kernels: 'plain' }, shape); // no check of the kernels in the log
      lines.length = 0;
      const backend = await model.createBackend(all);
      const { cache } = estimateMemory(shape, all, { cacheType: 'f32', fusedAttention: true });
      await expect.poll(() => Math.abs(cache - logged('KV'))).toBeLessThan(2 ** 14);
      await backend.close();
      model.close();
    },
  );

  it('knows the weights of a file', async () => {
    const { blockBytes, inputBytes, otherBytes, vocabSize } = await describeGguf({
      path: EMBEDDED,
      gpu: false,
    });
    const model = await loadGguf({ path: EMBEDDED, gpu: false });
    expect(blockBytes.reduce((sum, bytes) => sum + bytes, inputBytes + otherBytes)).toBe(
      model.native.sizeBytes,
    );
    expect(vocabSize).toBe(model.native.vocabSize);
    model.close();
  });

  it.each<[string, (bytes: Buffer) => Buffer, string]>([
    ['no GGUF', () => Buffer.from('no model'), 'is not a GGUF file'],
    ['a cut header', (bytes) => bytes.subarray(0, 200), 'damaged or truncated'],
    ['missing weights', (bytes) => bytes.subarray(0, bytes.length - 1), 'is truncated'],
  ])('refuses %s', async (name, change, message) => {
    const file = path.join(folder, `${name}.gguf`);
    fs.writeFileSync(file, change(fs.readFileSync(EMBEDDED)));
    await expect(describeGguf({ path: file, gpu: false })).rejects.toMatchObject({
      code: 'MODEL_INVALID',
      message: expect.stringContaining(message),
    });
  });
});
