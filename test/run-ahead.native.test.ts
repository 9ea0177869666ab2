import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { type Backend, MEMORY_REMOVE } from '../src/backends/backend.ts';
import { type GgufModel, loadGguf } from '../src/backends/gguf.ts';
import { loadAddon, type SamplerHandle } from '../src/native.ts';
import { randomNumbers } from './fakes/random-numbers.ts';

const file = path.resolve(import.meta.dirname, 'golden/training/tiny-qwen3.gguf');
const SLOTS = 6;
const cleanup: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of cleanup.reverse()) await close();
});

/** A sequence of the test: what comes next, and where. */
type Live = { slot: number; tokens: number[]; position: number };

async function open(gguf: GgufModel, sharesCells: boolean): Promise<Backend> {
  const backend = await gguf.createBackend({
    kvTokens: SLOTS * 256,
    sharesCells,
    batchTokens: 64,
    slotCount: SLOTS,
    maxOutputs: SLOTS,
    threads: 1,
  });
  cleanup.push(() => backend.close());
  return backend;
}

function greedySampler(vocabSize: number): SamplerHandle {
  const { Sampler, SamplerPlan } = loadAddon();
  return new Sampler(new SamplerPlan({ vocabSize, temperature: 0, topLogprobs: 0 }), 0n);
}

/** One step of all sequences; gives the token of each and its log-probability. */
async function step(backend: Backend, live: readonly Live[], edits: readonly number[], mayGoOn: boolean) {
  const ends: number[] = [];
  for (const { tokens } of live) ends.push((ends.at(-1) ?? -1) + tokens.length);
  const { samples } = await backend.step({
    memoryEdits: Int32Array.from(edits),
    tokens: Int32Array.from(live.flatMap(({ tokens }) => tokens)),
    positions: Int32Array.from(live.flatMap(({ tokens, position }) => tokens.map((_, i) => position + i))),
    sequences: Int32Array.from(live.flatMap(({ tokens, slot }) => tokens.map(() => slot))),
    sampleRows: Int32Array.from(ends),
    samplers: live.map(() => greedySampler(backend.vocabSize)),
    rowEdits: [],
    scoreRows: new Int32Array(0),
    adapter: 0,
    mayGoOn,
  });
  return { tokens: Array.from(samples.tokens), logprobs: Array.from(samples.logprobs) };
}

describe('a step that may be gone on from', () => {
  for (const sharesCells of [true, false])
    it(`changes nothing, whatever comes next (shared cells: ${sharesCells})`, async () => {
      const gguf = await loadGguf({ path: file, gpu: false });
      cleanup.push(() => gguf.close());
      const eager = await open(gguf, sharesCells);
      const plain = await open(gguf, sharesCells);
      const random = randomNumbers(sharesCells ? 11 : 12);
      const below = (count: number): number => Math.floor(random() * count);
      const begin = (slot: number): Live => ({
        slot,
        tokens: Array.from({ length: 1 + below(8) }, () => below(eager.vocabSize)),
        position: 0,
      });
      let live: Live[] = [begin(0), begin(3)];
      let edits: number[] = [];
      let compared = 0;
      for (let turn = 0; turn < 400; turn++) {
        const expected = await step(plain, live, edits, false);
        const got = await step(eager, live, edits, true);
        edits = [];
        expect(got.tokens, `turn ${turn}`).toEqual(expected.tokens);
        for (const [i, logprob] of got.logprobs.entries())
          expect(logprob).toBeCloseTo(expected.logprobs[i]!, 4);
        compared += live.length;
        for (const [i, sequence] of live.entries()) {
          sequence.position += sequence.tokens.length;
          sequence.tokens = [got.tokens[i]!];
        }
        if (random() < 0.5) await sleep(below(4)); // the next step is begun, half done or done
        const what = below(12);
        const one = live[below(live.length)]!;
        if (what === 0) one.tokens = [below(eager.vocabSize)];
        if (what === 1) one.tokens.push(below(eager.vocabSize));
        if (what === 2) eager.abortStep();
        if (what === 3)
          expect(await eager.saveSlot(one.slot)).toHaveLength((await plain.saveSlot(one.slot)).length);
        const ends = what === 4 || live.some(({ position }) => position > 200);
        if (ends && live.length > 1) {
          const ended = live.find(({ position }) => position > 200) ?? one;
          live = live.filter((sequence) => sequence !== ended);
          edits.push(MEMORY_REMOVE, ended.slot, 0, random() < 0.5 ? ended.position : 0, -1);
        } else if (ends) {
          edits.push(MEMORY_REMOVE, one.slot, 0, 0, -1);
          live = [begin(one.slot)];
        }
        const free = Array.from({ length: SLOTS }, (_, slot) => slot).filter(
          (slot) => !live.some((sequence) => sequence.slot === slot),
        );
        if (what === 5 && free.length > 0) {
          const slot = free[below(free.length)]!;
          edits.push(MEMORY_REMOVE, slot, 0, 0, -1);
          live = [...live, begin(slot)].sort((a, b) => a.slot - b.slot);
        }
      }
      expect(compared).toBeGreaterThan(400);
    });
});
