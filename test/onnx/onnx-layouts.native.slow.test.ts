/** Graphs in the layouts of exporters: after any rewrite the outputs are those of the file. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ComputeThread } from '../../src/onnx/compute-thread.ts';
import { readFolder } from '../../src/onnx/folder.ts';
import { giveFresh } from '../../src/onnx/graph/fresh.ts';
import { fuseAttention } from '../../src/onnx/graph/fuse.ts';
import { readGraphFile } from '../../src/onnx/graph/graph-file.ts';
import type { Decoder } from '../../src/onnx/messages.ts';
import type { DecoderMethods } from '../../src/onnx/worker.ts';
import type { ChatCompletion } from '../../src/protocol/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { type BareSession, openBare } from '../models/formats/bare-session.ts';
import {
  ask,
  closeAll,
  DYNAMIC,
  EMBEDDED,
  LAYOUTS,
  layoutOf,
  openRuntime,
  questions,
  whyNoOnnx,
} from '../models/formats/engines.ts';

afterAll(closeAll);

const SLOTS = 4;
const MAX_ROWS = SLOTS * 8;
const TOKENS = 900; // ordinary ones of the embedded model
const COUNT = 'Count from 1 to 9.';

/** A step: some slots lose tokens or get those of another one, then some compute new tokens. */
type Turn = {
  readonly cut: { readonly slot: number; readonly share: number } | null;
  readonly copy: { readonly from: number; readonly to: number } | null;
  readonly chunks: readonly (readonly number[])[]; // (slots) new tokens, of at least one slot
};

const slot = fc.nat(SLOTS - 1);
const chunk = fc.oneof(
  { arbitrary: fc.array(fc.nat(TOKENS), { maxLength: 1 }), weight: 2 },
  fc.array(fc.nat(TOKENS), { maxLength: 8 }),
  fc.array(fc.nat(TOKENS), { minLength: 6, maxLength: 8 }), // alike enough to run together
);
const turns = (slots: number): fc.Arbitrary<Turn[]> =>
  fc.array(
    fc.record({
      cut: fc.option(fc.record({ slot, share: fc.double({ min: 0, max: 1, noNaN: true }) }), { freq: 3 }),
      copy: fc.option(fc.record({ from: slot, to: slot }), { freq: 3 }),
      chunks: fc
        .array(chunk, { minLength: slots, maxLength: slots })
        .filter((chunks) => chunks.some((tokens) => tokens.length > 0)),
    }),
    { minLength: 8, maxLength: 14 },
  );

/** Edits of the cache, and what the slots then hold. */
function edit({ cut, copy }: Turn, held: number[][]): number[] {
  const edits: number[] = [];
  if (cut) {
    const from = Math.round(cut.share * held[cut.slot]!.length);
    edits.push(0, cut.slot, -1, from, -1);
    held[cut.slot] = held[cut.slot]!.slice(0, from);
  }
  if (copy && copy.from !== copy.to) {
    const length = held[copy.from]!.length >> 1;
    edits.push(0, copy.to, -1, 0, -1, 1, copy.from, copy.to, 0, length);
    held[copy.to] = held[copy.from]!.slice(0, length);
  }
  return edits;
}

/** The largest difference; not a number where one of them is none. */
function distance(ours: Float32Array, theirs: Float32Array): number {
  return ours.reduce((worst, value, i) => Math.max(worst, Math.abs(value - theirs[i]!)), 0);
}

const logSumExp = (row: Float32Array): number => {
  const most = row.reduce((best, value) => Math.max(best, value), -Infinity);
  return most + Math.log(row.reduce((sum, value) => sum + Math.exp(value - most), 0));
};

describe.skipIf(whyNoOnnx() !== null).each(Object.keys(LAYOUTS))('%s', (name) => {
  const { change, within } = LAYOUTS[name]!;
  const isDynamic = within === DYNAMIC;
  const isExact = within <= 1e-3;
  let model: string;
  let bare: BareSession;
  let thread: ComputeThread<DecoderMethods>;
  let decoder: Decoder;
  let runtime: Runtime;
  const logits = new SharedArrayBuffer(4 * MAX_ROWS * 1024);

  beforeAll(async () => {
    model = layoutOf(name);
    const { file, sizes } = readFolder(model);
    bare = await openBare(file);
    thread = new ComputeThread('worker');
    decoder = await thread.call(
      'open',
      { file, sizes, embeddings: null },
      { threads: 1, providers: ['cpu'] },
    );
    runtime = await openRuntime(model);
  });
  afterAll(() => Promise.all([thread.close(), bare.release()]));

  it(`is changed like this: ${change}`, () => {
    const { file, sizes } = readFolder(model);
    const graph = readGraphFile(file);
    const [fused, fresh] = [fuseAttention(graph, sizes), giveFresh(graph, sizes)];
    expect(fused ? 'fused' : fresh ? 'fresh' : 'none').toBe(change);
    expect(decoder.fresh !== null).toBe(change !== 'none');
  });

  it.skipIf(isDynamic)('gives the logits of its file, whatever runs together', async () => {
    const property = fc.asyncProperty(turns(SLOTS), async (all) => {
      await thread.call('start', { slotCount: SLOTS, logits, abort: new SharedArrayBuffer(4) });
      const held: number[][] = Array.from({ length: SLOTS }, () => []);
      for (const turn of all) {
        const memoryEdits = Int32Array.from(edit(turn, held));
        const step = { tokens: [] as number[], positions: [] as number[], sequences: [] as number[] };
        const asked = turn.chunks.map((tokens, at) => {
          const first = { row: step.tokens.length, position: held[at]!.length };
          for (const token of tokens) {
            step.tokens.push(token);
            step.positions.push(held[at]!.length);
            step.sequences.push(at);
            held[at]!.push(token);
          }
          return first;
        });
        const [tokens, positions, sequences] = [step.tokens, step.positions, step.sequences].map((values) =>
          Int32Array.from(values),
        );
        const rows = Int32Array.from(step.tokens.keys());
        await thread.call('step', {
          memoryEdits,
          tokens: tokens!,
          positions: positions!,
          sequences: sequences!,
          rows,
          media: [],
        });
        for (const [at, { row, position }] of asked.entries()) {
          if (turn.chunks[at]!.length === 0) continue;
          const expected = (await bare.run([held[at]!])).slice(position);
          for (const [i, theirs] of expected.entries()) {
            const size = bare.vocabSize;
            expect(distance(new Float32Array(logits, 4 * (row + i) * size, size), theirs)).toBeLessThan(
              within,
            );
          }
        }
      }
    });
    await fc.assert(property, { numRuns: 4, seed: 7 });
  });

  const answer = (question: string, fields: object = {}): Promise<ChatCompletion> =>
    runtime.createCompletion(ask(question, { max_tokens: 16, ...fields }));
  const texts = ({ choices }: ChatCompletion) => choices.map(({ message }) => message.content);

  it('answers greedily with the tokens and log-probabilities of its file', async () => {
    const fields = { logprobs: true, return_token_ids: true };
    const asked = questions(12);
    const answers: ChatCompletion[] = [];
    // Company changes activations that are quantized together: those are asked alone, without anything cached.
    if (isDynamic)
      for (const [i, question] of asked.entries())
        answers.push(await answer(question, { ...fields, cache_salt: `${i}` }));
    else answers.push(...(await Promise.all(asked.map((question) => answer(question, fields)))));
    for (const { choices, prompt_token_ids: prompt } of answers) {
      const { token_ids: ids, logprobs } = choices[0]!;
      const steps = isDynamic ? [prompt!, ...ids!.map((id) => [id])] : [[...prompt!, ...ids!]];
      const rows = (await bare.run(steps)).slice(prompt!.length - 1);
      for (const [at, { logprob }] of logprobs!.content!.entries()) {
        const row = rows[at]!;
        expect(Math.max(...row) - row[ids![at]!]!).toBeLessThan(within);
        expect(Math.abs(row[ids![at]!]! - logSumExp(row) - logprob)).toBeLessThan(2 * within);
      }
    }
    if (!isExact || name.includes('q4')) return;
    const gguf = await openRuntime(EMBEDDED);
    const theirs = await Promise.all(
      asked.map((question) =>
        gguf.createCompletion(ask(question, { max_tokens: 16, return_token_ids: true })),
      ),
    );
    expect(answers.map(({ choices }) => choices[0]!.token_ids)).toEqual(
      theirs.map(({ choices }) => choices[0]!.token_ids),
    );
  });

  it('serves n choices, cached prompts and beams, and stops at an abort', async () => {
    const fields = { temperature: 1.5, seed: 7, max_tokens: 12 };
    const many = texts(await answer('Tell me a story.', { ...fields, n: 4 }));
    expect(new Set(many).size).toBeGreaterThan(2);
    if (isExact) expect([many[2]]).toEqual(texts(await answer('Tell me a story.', { ...fields, seed: 9 })));

    const long = questions(6).join(' ');
    const [first, again] = [await answer(long), await answer(`${long} Thank you.`)];
    expect(again.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(30);
    const other = await answer(`${long} Thank you.`, { cache_salt: 'other' });
    expect(other.usage.prompt_tokens_details!.cached_tokens).toBe(0);
    if (isExact) expect(texts(again)).toEqual(texts(other));
    expect(first.choices[0]!.message.content).not.toBe('');

    const beams = texts(await answer(COUNT, { use_beam_search: true, n: 3, max_tokens: 40 }));
    expect(new Set(beams).size).toBe(3);
    if (isExact) expect([beams[0]]).toEqual(texts(await answer(COUNT, { max_tokens: 40 })));

    const controller = new AbortController();
    const before = runtime.stats().generatedTokens;
    const stopped = runtime.createCompletion(ask(COUNT, { max_tokens: 800, ignore_eos: true }), controller);
    const beside = answer(COUNT);
    await expect.poll(() => runtime.stats().generatedTokens, { interval: 2 }).toBeGreaterThan(before);
    controller.abort();
    await expect(stopped).rejects.toMatchObject({ code: 'ABORTED' });
    expect(texts(await beside)).not.toEqual(['']);
    // A sequence aborted during a step counts until the step ends.
    await expect.poll(() => runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
  });
});
