import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { createMatchers } from '../../src/answer/constraint.ts';
import { type Backend, MEMORY_REMOVE } from '../../src/engine/backend/index.ts';
import { type Handle, loadAddon, type SamplerHandle } from '../../src/engine/native/index.ts';
import { type GgufModel, loadGguf } from '../../src/models/formats/gguf.ts';
import { OWN_PATHS } from '../../src/structured/index.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';

const file = path.resolve(import.meta.dirname, '../golden/training/tiny-qwen3.gguf');
const SLOTS = 6;
const cleanup: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of cleanup.reverse()) await close();
});

/** A sequence of the test: what comes next, and where; and what holds it, for each of the two backends. */
type Live = { slot: number; tokens: number[]; position: number; matchers: readonly Handle[] };
/** Letters are free, capitals are forced, and the end comes before long. */
const HELD = { regex: '([a-z ]{1,9}THE[a-z]{2}AND ){1,12}' };

async function open(gguf: GgufModel, isKvUnified: boolean): Promise<Backend> {
  const backend = await gguf.createBackend({
    kvTokens: SLOTS * 256,
    isKvUnified,
    batchTokens: 64,
    slotCount: SLOTS,
    maxOutputs: SLOTS,
    threads: 1,
  });
  cleanup.push(() => backend.close());
  return backend;
}

/** Without log-probabilities, forced tokens are used. */
function greedySampler(vocabSize: number, topLogprobs: number): SamplerHandle {
  const { Sampler, SamplerPlan } = loadAddon();
  return new Sampler(new SamplerPlan({ vocabSize, temperature: 0, topLogprobs }), 0n);
}

/** One step of all sequences; gives the token of each and its log-probability. */
async function step(backend: Backend, live: readonly Live[], edits: readonly number[], mayRunAhead: boolean) {
  const matchers = live.map((sequence) => sequence.matchers[mayRunAhead ? 1 : 0] ?? null);
  const ends: number[] = [];
  for (const { tokens } of live) ends.push((ends.at(-1) ?? -1) + tokens.length);
  const { samples } = await backend.step({
    memoryEdits: Int32Array.from(edits),
    tokens: Int32Array.from(live.flatMap(({ tokens }) => tokens)),
    positions: Int32Array.from(live.flatMap(({ tokens, position }) => tokens.map((_, i) => position + i))),
    sequences: Int32Array.from(live.flatMap(({ tokens, slot }) => tokens.map(() => slot))),
    sampleRows: Int32Array.from(ends),
    samplers: matchers.map((matcher) => greedySampler(backend.vocabSize, matcher ? -1 : 0)),
    ...(matchers.some((matcher) => matcher) ? { matchers } : {}),
    rowEdits: [],
    scoreRows: new Int32Array(0),
    adapter: 0,
    mayRunAhead,
  });
  const { tokens, logprobs, isFinal, forced, status } = samples;
  return live.map((_, i) => ({
    token: tokens[i]!,
    logprob: logprobs[i]!,
    isFinal: isFinal[i] === 1 || status[i] !== 0,
    forced: Array.from(forced?.ids.subarray(forced.offsets[i], forced.offsets[i + 1]) ?? []),
  }));
}

describe('a step that may be followed by a run-ahead step', () => {
  for (const isKvUnified of [true, false])
    it(`changes nothing, whatever comes next (unified KV cache: ${isKvUnified})`, async () => {
      const gguf = await loadGguf({ path: file, gpu: false });
      cleanup.push(() => gguf.close());
      const eager = await open(gguf, isKvUnified);
      const plain = await open(gguf, isKvUnified);
      const random = randomNumbers(isKvUnified ? 11 : 12);
      const below = (count: number): number => Math.floor(random() * count);
      const begin = async (slot: number): Promise<Live> => ({
        slot,
        tokens: Array.from({ length: 1 + below(8) }, () => below(eager.vocabSize)),
        position: 0,
        matchers:
          random() < 0.5
            ? (await createMatchers({ constraint: { spec: HELD, paths: OWN_PATHS }, unused: null }, 2, gguf))
                .matchers
            : [],
      });
      let live: Live[] = [await begin(0), await begin(3)];
      let edits: number[] = [];
      let compared = 0;
      let forced = 0;
      for (let turn = 0; turn < 400; turn++) {
        const expected = await step(plain, live, edits, false);
        const got = await step(eager, live, edits, true);
        edits = [];
        for (const [i, { logprob, ...row }] of got.entries()) {
          const { logprob: plainLogprob, ...plainRow } = expected[i]!;
          expect(row, `turn ${turn}`).toEqual(plainRow);
          if (live[i]!.matchers.length === 0) expect(logprob).toBeCloseTo(plainLogprob, 4);
        }
        compared += live.length;
        for (const [i, sequence] of live.entries()) {
          sequence.position += sequence.tokens.length;
          sequence.tokens = [got[i]!.token, ...got[i]!.forced];
          forced += got[i]!.forced.length;
        }
        const held = live.filter((_, i) => !got[i]!.isFinal);
        for (const { slot } of live.filter((_, i) => got[i]!.isFinal))
          edits.push(MEMORY_REMOVE, slot, 0, 0, -1);
        live = held.length > 0 ? held : [await begin(live[0]!.slot)];
        if (random() < 0.5) await sleep(below(4)); // real time, as another thread computes: the run-ahead step has started, is half done or done
        const what = below(12);
        const one = live[below(live.length)]!;
        if (what === 0) one.tokens = [below(eager.vocabSize)];
        if (what === 1) one.tokens.push(below(eager.vocabSize));
        if (what === 2) eager.abortStep();
        if (what === 3) {
          const none = new Int32Array(0);
          expect(await eager.saveSlot(none, one.slot)).toHaveLength(
            (await plain.saveSlot(none, one.slot)).length,
          );
        }
        const ends = what === 4 || live.some(({ position }) => position > 200);
        if (ends && live.length > 1) {
          const ended = live.find(({ position }) => position > 200) ?? one;
          live = live.filter((sequence) => sequence !== ended);
          edits.push(MEMORY_REMOVE, ended.slot, 0, random() < 0.5 ? ended.position : 0, -1);
        } else if (ends) {
          edits.push(MEMORY_REMOVE, one.slot, 0, 0, -1);
          live = [await begin(one.slot)];
        }
        const free = Array.from({ length: SLOTS }, (_, slot) => slot).filter(
          (slot) => !live.some((sequence) => sequence.slot === slot),
        );
        if (what === 5 && free.length > 0) {
          const slot = free[below(free.length)]!;
          edits.push(MEMORY_REMOVE, slot, 0, 0, -1);
          live = [...live, await begin(slot)].sort((a, b) => a.slot - b.slot);
        }
      }
      expect(compared).toBeGreaterThan(400);
      expect(forced).toBeGreaterThan(40);
    });
});
