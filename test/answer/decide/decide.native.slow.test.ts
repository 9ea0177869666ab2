/** Decisions with the same bits in every company and way, and with one computation of their input. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecisionQuestion, DecisionRequest, RuntimeOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, serve } from '../../../src/serve/http/index.ts';
import { architectureFiles } from '../../architectures/files.ts';
import { levels, QUESTIONS, TICKET } from './questions.ts';

const DECODER = path.resolve(import.meta.dirname, '../../../native/media/decoder/build/Release/decoder.node');
const canDecode = fs.existsSync(DECODER);
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-decide-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(root, { recursive: true });
});

/** Answers without the counts of a cache. */
const bits = async (of: Pick<Runtime, 'decide'>, request: DecisionRequest) =>
  (await of.decide(request)).answers;

describe('the same bits', () => {
  const request = { input: TICKET, questions: QUESTIONS } satisfies DecisionRequest;
  const many = Array.from(
    { length: 96 },
    (_, i): DecisionQuestion => ({
      type: 'predicate',
      instructions: `Is it about number ${i}?`,
    }),
  );
  let alone: unknown;
  beforeAll(async () => {
    await using fresh = await createRuntime({ threads: 1, prefixCache: false });
    alone = await bits(fresh, request);
  });

  it('among 100, from the cache, one question at a time', async () => {
    const all = await runtime.decide({ input: TICKET, questions: [...Object.values(QUESTIONS), ...many] });
    expect(Object.values(alone as object).map((one) => ({ ...one, name: null }))).toEqual(
      all.answers.slice(0, 4),
    );
    expect(await bits(runtime, request)).toEqual(alone);
    for (const [name, question] of Object.entries(QUESTIONS))
      expect(await bits(runtime, { input: TICKET, questions: { [name]: question } })).toEqual({
        [name]: (alone as Record<string, unknown>)[name],
      });
  });

  it.each<[string, RuntimeOptions]>([
    ['in steps of few tokens', { maxBatchTokens: 16 }],
    ['with more threads', { threads: 2 }],
    ['with processed log-probabilities elsewhere', { logprobsMode: 'processed' }],
    ['in a process of its own', { isolate: true, home: path.join(root, 'isolated') }],
  ])('%s', async (_, options) => {
    await using other = await createRuntime({ threads: 1, ...options });
    expect(await bits(other, request)).toEqual(alone);
  });

  it('over HTTP, and as rows of a batch', async () => {
    const server = await serve(runtime, { port: 0 });
    const remote = await connect({ baseUrl: server.url });
    expect(await bits(remote as Pick<Runtime, 'decide'>, request)).toEqual(alone);
    await remote.close();
    await server.close();
    const rows = [{ custom_id: 'a', url: '/v1/decisions', body: request }];
    for await (const row of runtime.batch(rows as never))
      expect(row).toMatchObject({ response: { body: { answers: alone } } });
  });
});

describe('the input', () => {
  const questions = Array.from(
    { length: 20 },
    (_, i): DecisionQuestion => ({
      type: 'score',
      instructions: `How much is it about number ${i}?`,
      levels: levels(3),
    }),
  );

  it.skipIf(!canDecode)('is computed once: with a picture', async () => {
    const folder = path.resolve(import.meta.dirname, '../../../models/seeing');
    await using seeing = await createRuntime({
      threads: 1,
      gpu: false,
      model: path.join(folder, 'onpolicy-seeing.gguf'),
    });
    const picture = fs.readFileSync(path.join(folder, 'pictures/three.png')).toString('base64');
    const content = [
      { type: 'input_image' as const, image_url: `data:image/png;base64,${picture}` },
      { type: 'input_text' as const, text: 'Look at the picture.' },
    ];
    const input = [{ role: 'user' as const, content }];
    const ask = async (count: number) =>
      (await seeing.decide({ input, questions: questions.slice(0, count) })).usage;
    const one = await ask(1);
    const { input_tokens, input_tokens_details: details } = await ask(20);
    expect(one.input_tokens).toBeGreaterThan(30); // the picture is there
    expect(details.cached_tokens).toBeGreaterThan(19 * (one.input_tokens - 50));
    expect(details.cache_write_tokens).toBeLessThan(one.input_tokens + 19 * 50);
    expect(input_tokens).toBe(details.cached_tokens + details.cache_write_tokens);
  });

  it.each(['qwen3', 'qwen35', 'gemma3'])('is computed once: %s', async (name) => {
    await using fresh = await createRuntime({
      threads: 1,
      gpu: false,
      model: { path: architectureFiles([name])[name]! },
    });
    const input = 'The state of the ticket is open. '.repeat(12);
    const { usage } = await fresh.decide({ input, questions });
    const [state] = [await fresh.tokenize(input)];
    const own = usage.input_tokens - questions.length * state.length;
    expect(usage.input_tokens_details.cache_write_tokens).toBeLessThan(state.length + own + 64);
    expect(usage).toMatchObject({ output_tokens: 0, total_tokens: usage.input_tokens });
  });
});
