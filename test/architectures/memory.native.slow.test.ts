/** The headers of all architectures' models -> the bytes that the engine then allocates, as its log says them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/engine/native/index.ts';
import { describeGguf, estimateMemory, loadGguf } from '../../src/models/formats/index.ts';
import type { CacheType } from '../../src/protocol/index.ts';
import { architectureFiles, knownArchitectures } from './files.ts';

const ASSISTANT = 'gemma4-assistant';
const NAMES = [...(await knownArchitectures()), 'qwen35-mtp', 'qwen35moe-mtp', 'glm4moe-mtp', 'hy_v3-mtp2'];
let files: Record<string, string>;
const lines: string[] = [];
let stopLog: () => void;
beforeAll(async () => {
  files = architectureFiles([...NAMES, ASSISTANT]);
  await describeGguf({ path: files['llama']!, gpu: false });
  stopLog = loadAddon().setLog((_level, text) => void lines.push(text));
}, 240_000);
afterAll(() => stopLog());

/** Bytes that the log says of buffers of these kinds, in the last context that was made. */
function logged(...kinds: string[]): number {
  const last = lines.slice(lines.findLastIndex((line) => line.includes('constructing llama_context')));
  const found = last.map(
    (line) => new RegExp(`(${kinds.join('|')}) buffer size = +([0-9.]+) MiB`).exec(line)?.[2],
  );
  return found.reduce((sum, mib) => sum + Number(mib ?? 0) * 2 ** 20, 0);
}

/** As files of real sizes have it: what a step computes with is a small part. */
const LIMITS = { kvTokens: 16_384, batchTokens: 256, slotCount: 8, maxOutputs: 36, threads: 1 };

describe('a head that drafts', () => {
  it.each(['qwen35-mtp', 'qwen35moe-mtp', 'glm4moe-mtp', 'hy_v3-mtp2'])('%s', async (name) => {
    const path = files[name]!;
    const shape = await describeGguf({ path, gpu: false });
    const limits = { ...LIMITS, isKvUnified: false };
    const kind = { cacheType: 'f16', fusedAttention: true } as const;
    const without = estimateMemory(shape, limits, kind);
    const estimate = estimateMemory(shape, { ...limits, hasDraftHead: true }, kind);
    const model = await loadGguf({ path, gpu: false, cacheType: 'f16', loadHeads: true }, shape);
    lines.length = 0;
    const backend = await model.createBackend({ ...limits, hasDraftHead: true });
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(backend.draftHead?.kind).toBe('own');
    await backend.close();
    model.close();
    const head = { cache: logged('KV', 'RS'), compute: logged('compute', 'output') }; // its context is the last
    const total = estimate.weights + without.cache + without.compute + head.cache + head.compute;
    expect(Math.abs(estimate.cache - without.cache - head.cache)).toBeLessThan(2 ** 14);
    expect((estimate.weights + estimate.cache + estimate.compute) / total).toBeGreaterThan(0.95);
    expect((estimate.weights + estimate.cache + estimate.compute) / total).toBeLessThan(1.05);
  });
});

it('an assistant, which shares the cache of its model', async () => {
  const kind = { cacheType: 'f16', fusedAttention: true } as const;
  const limits = { ...LIMITS, isKvUnified: true };
  const [path, beside] = [files['gemma4']!, files[ASSISTANT]!];
  const shape = await describeGguf({ path: beside, gpu: false, mayDraft: true });
  const estimate = estimateMemory(shape, limits, kind);
  const model = await loadGguf({ path, gpu: false, cacheType: 'f16' });
  const assistant = await loadGguf({ path: beside, gpu: false, loadHeads: true }, shape);
  const backend = await model.createBackend(limits);
  lines.length = 0;
  await backend.attachHead({ model: assistant.native, layers: [] });
  await new Promise((resolve) => setTimeout(resolve, 0));
  const compute = logged('compute', 'output');
  await backend.close();
  expect(estimate.weights).toBe(assistant.native.sizeBytes);
  assistant.close();
  model.close();
  expect(estimate.cache).toBe(0);
  expect(logged('KV')).toBe(0);
  expect(estimate.compute / compute).toBeGreaterThan(0.95);
  expect(estimate.compute / compute).toBeLessThan(1.05);
});

describe.each<[CacheType, boolean, boolean]>([
  ['f16', true, false],
  ['f16', true, true],
  ['q8_0', true, false],
  ['f16', false, false],
])('a cache of %s, fused %s, one for all %s', (cacheType, fusedAttention, isKvUnified) => {
  // The engine fuses no attention of PLM.
  it.each(NAMES.filter((name) => name !== 'plm' || !fusedAttention))('%s', async (name) => {
    const path = files[name]!;
    const shape = await describeGguf({ path, gpu: false });
    const limits = { ...LIMITS, isKvUnified };
    const estimate = estimateMemory(shape, limits, { cacheType, fusedAttention });
    const model = await loadGguf({ path, gpu: false, fusedAttention, cacheType }, shape);
    lines.length = 0;
    const backend = await model.createBackend(limits);
    await new Promise((resolve) => setTimeout(resolve, 0)); // log lines come through the event loop
    await backend.close();
    const real = {
      weights: model.native.sizeBytes,
      cache: logged('KV', 'RS'),
      compute: logged('compute', 'output'),
    };
    model.close();
    const total = (of: typeof real): number => of.weights + of.cache + of.compute;
    expect(shape.isRecurrent).toBe(model.native.hasRecurrentState);
    expect(estimate.weights).toBe(real.weights);
    expect(Math.abs(estimate.cache - real.cache)).toBeLessThan(2 ** 14); // the log says hundredths of MiB, of two buffers
    expect(total(estimate) / total(real)).toBeGreaterThan(0.95);
    expect(total(estimate) / total(real)).toBeLessThan(1.05);
  });
});

describe('caches of windows alone', () => {
  it.each([
    'gemma2',
    'gemma3',
    'gemma3n',
    'gemma4',
    'gpt-oss',
    'olmo2',
    'cohere2',
    'plamo3',
    'afmoe',
    'llama4',
    'granite_swa',
    'muse-glimmer',
    'mellum',
    'exaone-moe',
    'cohere2moe',
    'step35',
    'mimo2',
    'laguna',
    'dots3note',
  ])('%s', async (name) => {
    const path = files[name]!;
    const shape = await describeGguf({ path, gpu: false });
    const limits = { ...LIMITS, isKvUnified: false, isWindowCacheFull: false };
    const model = await loadGguf({ path, gpu: false, cacheType: 'f16' }, shape);
    lines.length = 0;
    const backend = await model.createBackend(limits);
    await new Promise((resolve) => setTimeout(resolve, 0));
    await backend.close();
    model.close();
    const { cache } = estimateMemory(shape, limits, { cacheType: 'f16', fusedAttention: true });
    expect(Math.abs(cache - logged('KV'))).toBeLessThan(2 ** 14);
  });
});
