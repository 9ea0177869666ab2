/** A model whose layers see a window of 12 tokens, every second one: a cache of the window answers as the full one does. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RuntimeOptions, TextCompletion, TextCompletionRequest } from '../../src/protocol/index.ts';
import { inspectModel } from '../../src/runtime/inspect-model.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';

/** The engine rounds the cells of the window and a step up to this: longer sequences use them again. */
const WINDOW_CELLS = 256;
const ANSWER = 60;
const CONTEXT = 1024;
const MAX_SEQUENCES = 4;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-window-'));
const file = path.join(folder, 'window.gguf');
let small: Runtime;
let full: Runtime;

const open = (slidingWindow: 'full' | 'window', options: RuntimeOptions = {}): Promise<Runtime> =>
  createRuntime({
    model: { path: file, slidingWindow },
    gpu: false,
    threads: 1,
    contextSize: CONTEXT,
    maxSequences: MAX_SEQUENCES,
    maxBatchTokens: 64,
    speculation: false,
    ...options,
  });

beforeAll(async () => {
  const sizes = { width: 64, hidden: 64, heads: 2, kvHeads: 1, headSize: 32, layers: 4 };
  await writeTinyModel(file, { architecture: 'gemma3', type: 'f32', ...sizes });
  [small, full] = await Promise.all([open('window'), open('full')]);
});
afterAll(async () => {
  await Promise.all([small.close(), full.close()]);
  fs.rmSync(folder, { recursive: true });
});

/** A prompt that begins with `seed`, so that no two share a prefix. */
const promptOf = (seed: number, length: number): number[] =>
  Array.from({ length }, (_, i) => (i * 31 + seed * 7 + ((i * seed) % 13)) % 90);

const request = (seed: number, length: number): TextCompletionRequest & { stream: false } => ({
  prompt: promptOf(seed, length),
  add_special_tokens: false,
  seed,
  temperature: 1,
  max_tokens: ANSWER,
  ignore_eos: true,
  logprobs: 0,
  return_token_ids: true,
  stream: false,
});

function expectSame(one: TextCompletion, other: TextCompletion): void {
  expect(one.choices.map(({ token_ids }) => token_ids)).toEqual(
    other.choices.map(({ token_ids }) => token_ids),
  );
  for (const [i, { logprobs }] of one.choices.entries())
    for (const [at, logprob] of logprobs!.token_logprobs.entries())
      expect(Math.abs(logprob! - other.choices[i]!.logprobs!.token_logprobs[at]!)).toBeLessThan(1e-3);
}

const LENGTHS = [3, 40, WINDOW_CELLS - 30, 2 * WINDOW_CELLS + 17, 700];

describe('a cache of the window', () => {
  it('is as much smaller as inspectModel says', async () => {
    const limits = {
      gpu: false,
      contextSize: CONTEXT,
      maxSequences: MAX_SEQUENCES,
      maxBatchTokens: 64,
    } as const;
    const [one, other] = await Promise.all(
      (['window', 'full'] as const).map((slidingWindow) => inspectModel(file, { ...limits, slidingWindow })),
    );
    const layer = 2 * 32 * 4; // bytes of a token: keys and values of 32 numbers
    expect(one!.memory.cache).toBe(MAX_SEQUENCES * layer * (2 * CONTEXT + 2 * WINDOW_CELLS));
    expect(other!.memory.cache).toBe((MAX_SEQUENCES + 16) * CONTEXT * layer * 4); // a pool, for cached prefixes as well
  });

  it.each(LENGTHS)(
    'gives the same tokens, alone and in company, after a prompt of %i tokens',
    async (length) => {
      const asked = Array.from({ length: MAX_SEQUENCES + 2 }, (_, seed) => request(seed, length));
      const alone = [];
      for (const one of asked.slice(0, 2)) alone.push(await full.createTextCompletion(one));
      const together = await Promise.all(asked.map((one) => small.createTextCompletion(one)));
      for (const [i, answer] of alone.entries()) expectSame(together[i]!, answer);
    },
  );

  it('gives the same tokens for several choices of a prompt', async () => {
    const asked = { ...request(5, 300), n: 3 };
    expectSame(await small.createTextCompletion(asked), await full.createTextCompletion(asked));
  });

  it('is reused whole by a second turn, and not in part', async () => {
    const asked = request(9, 400);
    const first = await small.createTextCompletion(asked);
    const turn = {
      ...asked,
      prompt: [...(asked.prompt as number[]), ...first.choices[0]!.token_ids!, 3, 4, 5],
    };
    const second = await small.createTextCompletion(turn);
    expect(second.usage!.prompt_tokens_details!.cached_tokens).toBe(400 + ANSWER - 1); // the last token was never computed
    expectSame(second, await full.createTextCompletion(turn));
    const part = { ...asked, prompt: [...(asked.prompt as number[]).slice(0, 350), 8, 9] };
    const third = await small.createTextCompletion(part);
    expect(third.usage!.prompt_tokens_details!.cached_tokens).toBe(0);
    expectSame(third, await full.createTextCompletion(part));
  });

  it('answers as before after requests were aborted in the middle', async () => {
    const asked = request(11, 500);
    const before = await small.createTextCompletion(asked);
    for (let round = 0; round < 12; round++) {
      const stop = new AbortController();
      const aborted = small.createTextCompletion(request(20 + round, 480), { signal: stop.signal });
      const beside = small.createTextCompletion({ ...asked, cache_salt: `round ${round}` });
      for (let turn = 0; turn < 3 * round; turn++) await new Promise(setImmediate);
      stop.abort();
      await aborted.catch(() => {});
      expectSame(await beside, before);
    }
  });

  it('gives the same tokens with drafts, which end at the window', async () => {
    const drafting = await open('window', { speculation: { method: 'ngram', maxTokens: 4 } });
    const repeating = {
      ...request(1, 1),
      prompt: Array.from({ length: 300 }, (_, i) => i % 6),
      temperature: 0,
    };
    expectSame(await drafting.createTextCompletion(repeating), await full.createTextCompletion(repeating));
    await drafting.close();
  });

  it('refuses kvTokens that do not hold the context of every sequence', async () => {
    const tight = await open('window', { kvTokens: 2 * CONTEXT });
    await expect(tight.createTextCompletion(request(1, 3))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'kvTokens',
      message: expect.stringContaining(`at least ${MAX_SEQUENCES * CONTEXT}`),
    });
    await tight.close();
  });
});

it('keeps the cells of a window in steps of more than 512 tokens', async () => {
  const [limits, hole, first] = [
    { maxBatchTokens: 1024, kvTokens: 1500 },
    request(1, 600),
    { ...request(2, 300), max_tokens: 12 },
  ];
  await using large = await open('full', limits);
  await large.createTextCompletion({ ...hole, max_tokens: 1 });
  const { choices } = await large.createTextCompletion(first);
  const turn = [...(first.prompt as number[]), ...choices[0]!.token_ids!];
  const next = { ...request(3, 1), prompt: [...turn, ...promptOf(4, 300)], max_tokens: 1 };
  // The first 512 tokens move the window of one, the others take cells around it, where the hole was.
  await Promise.all(
    [next, { ...request(5, 690), max_tokens: 1 }].map((one) => large.createTextCompletion(one)),
  );
  const forked = { ...next, prompt: [...turn, 8, 9] };
  const answer = await large.createTextCompletion(forked);
  expect(answer.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(0); // of a checkpoint
  expectSame(answer, await full.createTextCompletion(forked));
});
