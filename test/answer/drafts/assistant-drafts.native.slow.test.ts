/** The drafts of an assistant of Gemma 4, which reads the cache of its model -> those of a bare loop of the engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Backend, MEMORY_REMOVE, NO_ADAPTER, type Step } from '../../../src/engine/backend/index.ts';
import { loadAddon, ROW_STATUS, type SamplerHandle } from '../../../src/engine/native/index.ts';
import { describeGguf, type GgufModel, loadGguf } from '../../../src/models/formats/index.ts';
import { architectureFiles } from '../../architectures/files.ts';
import { assistantDrafts, whyNoBareEngine } from '../../models/formats/reference/bare-engine.ts';

let files: Record<string, string>;
beforeAll(() => {
  files = architectureFiles(['gemma4', 'gemma4-moe', 'gemma4-assistant']);
}, 120_000);

const DRAFTS = 3;
/** A draft whose logit is so near to the next best may be either of them. */
const TIE = 0.05;

describe.skipIf(whyNoBareEngine() !== null)('an assistant beside a bare loop of the engine', () => {
  type Sequence = { readonly tokens: number[]; readonly sampler: SamplerHandle };
  type Drafted = { readonly ids: number[]; readonly tokens: number[] };

  /** Computes the last tokens of each sequence, each with wrong drafts behind it, and returns what is drafted behind the sampled ones. */
  async function step(
    backend: Backend,
    sequences: readonly Sequence[],
    from: readonly number[],
    wrong: readonly number[],
  ): Promise<Drafted[]> {
    const { createDrafter } = loadAddon();
    const entries = sequences.map(({ tokens }, i) => [...tokens.slice(from[i]), ...wrong]);
    const each = <T>(value: (entry: number[], i: number) => readonly T[]): T[] => entries.flatMap(value);
    let end = 0;
    const sampleRows = each((entry) => {
      end += entry.length;
      return Array.from({ length: wrong.length + 1 }, (_, k) => end - 1 - wrong.length + k);
    });
    const input: Step = {
      adapter: NO_ADAPTER,
      memoryEdits: Int32Array.from(each((_, i) => [MEMORY_REMOVE, i, 0, from[i]!, -1])),
      tokens: Int32Array.from(each((entry) => entry)),
      positions: Int32Array.from(each((entry, i) => entry.map((_, k) => from[i]! + k))),
      sequences: Int32Array.from(each((entry, i) => entry.map(() => i))),
      followed: Int32Array.from(sequences, (_, i) => i),
      sampleRows: Int32Array.from(sampleRows),
      samplers: each((_, i) => [0, ...wrong].map(() => sequences[i]!.sampler)),
      drafts: {
        drafted: Int32Array.from(each(() => [-1, ...wrong])),
        drafters: each((_, i) => {
          const sources = { minMatch: 3, usesText: false, usesHead: true };
          const drafter = createDrafter(sources, Int32Array.from(sequences[i]!.tokens));
          return [drafter, ...wrong.map(() => null)];
        }),
        limits: new Int32Array(3 * sampleRows.length).fill(DRAFTS),
      },
      rowEdits: [],
      scoreRows: new Int32Array(0),
      mayRunAhead: false,
    };
    const { samples } = await backend.step(input);
    const { offsets, ids } = samples.drafts!;
    const rows = wrong.length + 1;
    return sequences.map(({ tokens }, i) => {
      const [first, end] = [i * rows, (i + 1) * rows];
      const sampled = samples.tokens.subarray(first, end);
      const isSampled = (_: number, k: number): boolean => samples.status[first + k] === ROW_STATUS.SAMPLED;
      return {
        ids: Array.from(ids.subarray(offsets[first], offsets[end])),
        tokens: [...tokens, ...sampled.filter(isSampled)], // one, or more if a draft was right by chance
      };
    });
  }

  it.each([
    ['one pool', 'gemma4', true, true],
    ['cells of each sequence', 'gemma4', false, true],
    ['small windows', 'gemma4', false, false],
    ['experts', 'gemma4-moe', true, true],
  ])('drafts the same: %s', { timeout: 120_000 }, async (_, name, isKvUnified, isWindowCacheFull) => {
    const file = files['gemma4-assistant']!;
    const load = async (path: string): Promise<GgufModel> =>
      await loadGguf(
        { path, gpu: false, kernels: 'plain', loadHeads: true },
        await describeGguf({ path, gpu: false, mayDraft: true }),
      );
    const [model, assistant] = [await load(files[name]!), await load(file)];
    const slotCount = 8;
    const backend = await model.createBackend({
      kvTokens: slotCount * 512,
      isKvUnified,
      isWindowCacheFull,
      batchTokens: 512,
      slotCount,
      maxOutputs: 64,
      threads: 1,
    });
    await backend.attachHead({ model: assistant.native, layers: [] });
    const { Sampler, SamplerPlan } = loadAddon();
    const plan = new SamplerPlan({ vocabSize: backend.vocabSize, temperature: 0, topLogprobs: 0 });
    let sequences = Array.from({ length: slotCount }, (_, k): Sequence => {
      const tokens = Array.from({ length: 5 + 11 * k }, (_, i) => 261 + ((i * (3 + k) + i * i) % 26));
      return { tokens, sampler: new Sampler(plan, 0n) };
    });
    const lengths = sequences.map(({ tokens }) => tokens.length);
    let from = sequences.map(() => 0);
    let compared = 0;
    for (const wrong of [[], [262, 263], [], [264]]) {
      const drafted = await step(backend, sequences, from, wrong);
      sequences = sequences.map(({ sampler }, i) => ({ sampler, tokens: drafted[i]!.tokens }));
      from = sequences.map(({ tokens }) => tokens.length - 1);
      const lines = sequences.map(({ tokens }, i) => [lengths[i]!, ...tokens]);
      const bare = assistantDrafts(files[name]!, file, lines, DRAFTS);
      for (const [i, { ids }] of drafted.entries()) {
        const tie = bare[i]!.findIndex(({ margin }) => margin < TIE);
        const sure = tie < 0 ? DRAFTS : tie;
        expect(ids.slice(0, sure)).toEqual(bare[i]!.slice(0, sure).map(({ id }) => id));
        expect(ids).toHaveLength(DRAFTS);
        compared += sure;
      }
    }
    await backend.close();
    assistant.close();
    model.close();
    expect(compared).toBeGreaterThan(0.7 * 4 * slotCount * DRAFTS);
  });
});
