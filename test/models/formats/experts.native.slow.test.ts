/** Steps that record the experts of their tokens: in company, cut into passes and with other layouts of the cache as alone. */
import { afterAll, describe, expect, it } from 'vitest';
import { NO_ADAPTER } from '../../../src/engine/backend/index.ts';
import { NO_EXPERT } from '../../../src/engine/native/index.ts';
import { loadGguf } from '../../../src/models/formats/index.ts';
import { architectureFiles } from '../../architectures/files.ts';

/** Attention, a hybrid, sliding windows, dense layers in front; layers with experts of each. */
const names = ['gpt-oss', 'qwen35moe', 'deepseek2', 'gemma4-moe', 'lfm2moe'];
const files = architectureFiles(names);
/** More than one pass of the engine. */
const LENGTHS = [5, 260, 2, 317];
/** Some of the same tokens at the same positions, behind others. */
const texts = LENGTHS.map((length, text) =>
  Int32Array.from({ length }, (_, i) => (i < 2 ? text : i * 31) % 250),
);

const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

async function open(name: string, isKvUnified: boolean) {
  const model = await loadGguf({ path: files[name]!, gpu: false, cacheType: 'f32', fusedAttention: false });
  const backend = await model.createBackend({
    kvTokens: 4096,
    batchTokens: 1024,
    slotCount: 4,
    maxOutputs: 64,
    isKvUnified,
    threads: 1,
    rollbackTokens: 3,
  });
  closing.push(async () => {
    await backend.close();
    await model.close();
  });
  return backend;
}

type Backend = Awaited<ReturnType<typeof open>>;

/** One step of some texts, each of a sequence of its own; the last token of each is scored. */
async function experts(backend: Backend, sequences: readonly number[]) {
  const of = sequences.map((sequence) => texts[sequence]!);
  const ends = of.map((_, i) => of.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0) - 1);
  const { experts: taken } = await backend.step({
    adapter: NO_ADAPTER,
    memoryEdits: Int32Array.from(sequences.flatMap((sequence) => [0, sequence, 0, 0, -1])),
    tokens: Int32Array.from(of.flatMap((text) => [...text])),
    positions: Int32Array.from(of.flatMap((text) => [...text.keys()])),
    sequences: Int32Array.from(of.flatMap((text, i) => [...text].map(() => sequences[i]!))),
    sampleRows: new Int32Array(0),
    samplers: [],
    rowEdits: [],
    scoreRows: Int32Array.from(ends.flatMap((end) => [end, 0, 0])),
    mayRunAhead: false,
    recordsExperts: true,
  });
  return taken!;
}

describe.each(names)('%s', (name) => {
  it('tokens in company have the experts that they have alone, but for the last layer', async () => {
    const alone = await open(name, true);
    const one: Awaited<ReturnType<typeof experts>>[] = [];
    for (const sequence of texts.keys()) one.push(await experts(alone, [sequence]));
    const { layers, used } = one[0]!;
    const width = layers * used;
    for (const [i, { ids }] of one.entries()) {
      expect(ids.length).toBe(LENGTHS[i]! * width);
      const unknown = [...ids.keys()].filter((at) => ids[at] === NO_EXPERT);
      // In the last layer the engine may compute only scored tokens.
      expect(unknown.every((at) => at < ids.length - width && at % width >= width - used)).toBe(true);
      expect([0, (LENGTHS[i]! - 1) * used]).toContain(unknown.length);
    }
    const all = one.flatMap(({ ids }) => [...ids]);
    for (const isKvUnified of [true, false]) {
      const backend = await open(name, isKvUnified);
      expect([...(await experts(backend, [0, 1, 2, 3])).ids]).toEqual(all);
    }
  });
});
