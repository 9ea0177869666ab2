/** Fields about how a request is served: priority, its id, the prefix cache's salt, special tokens, and those that do nothing. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createPool } from '../../../src/serve/http/index.ts';
import { PARIS } from '../asking.ts';
import { ask, chunksOf, type Fields, onlyThese, PLAIN, specialId } from './model.ts';

let runtime: Runtime;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-serving-'));
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

const LONG = { ignore_eos: true, max_tokens: 60 };

/** The tags of requests in the order they end; each starts after the one before it has started. */
async function endings(on: Runtime, requests: readonly (readonly [string, Fields])[]): Promise<string[]> {
  const order: string[] = [];
  const running: Promise<unknown>[] = [];
  for (const [tag, fields] of requests) {
    running.push(ask(on, `Question ${tag}`, fields).then(() => order.push(tag)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(running);
  return order;
}

describe('priority', () => {
  it('lower values run first under the priority policy, equal ones as they came', async () => {
    await using on = await createRuntime({ threads: 1, scheduling: 'priority', maxSequences: 1 });
    await ask(on, PARIS); // the model is loaded
    const rest = (['a', 'b', 'c', 'd', 'e'] as const).map(
      (tag, i) => [tag, { max_tokens: 2, priority: [3, -2, 3, 0, -2][i]! }] as const,
    );
    expect(await endings(on, [['first', { ...LONG, priority: 0 }], ...rest])).toEqual([
      'first',
      'b',
      'e',
      'd',
      'a',
      'c',
    ]);
  });

  it('the highest value makes room when the cache is full', async () => {
    const limits = { threads: 1, contextSize: 128, kvTokens: 128, prefixCache: false } as const;
    const work = (priority: number): Fields => ({ ignore_eos: true, max_tokens: 90, priority });
    await using byPriority = await createRuntime({ ...limits, scheduling: 'priority' });
    await ask(byPriority, PARIS);
    expect(
      await endings(byPriority, [
        ['early', work(5)],
        ['urgent', work(-5)],
      ]),
    ).toEqual(['urgent', 'early']);
    await using inOrder = await createRuntime(limits);
    await ask(inOrder, PARIS);
    expect(
      await endings(inOrder, [
        ['early', work(0)],
        ['late', work(0)],
      ]),
    ).toEqual(['early', 'late']);
  });

  it('is an error under the fcfs policy unless it is 0, and requests run as they came', async () => {
    for (const priority of [1, -1])
      await expect(ask(runtime, PARIS, { priority })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'priority',
        status: 400,
      });
    await using on = await createRuntime({ threads: 1, maxSequences: 1 });
    await ask(on, PARIS);
    const tags = ['a', 'b', 'c'] as const;
    const rest = tags.map((tag) => [tag, { max_tokens: 2, priority: 0 }] as const);
    expect(await endings(on, [['first', LONG], ...rest])).toEqual(['first', ...tags]);
  });
});

describe('request_id', () => {
  it('names the answer, in every chunk too; without one each answer has a new id', async () => {
    expect((await ask(runtime, PARIS, { request_id: 'mine' })).id).toBe('chatcmpl-mine');
    const request = { messages: [{ role: 'user' as const, content: PARIS }], max_tokens: 3 };
    for (const { id } of await chunksOf(runtime, { ...request, request_id: 'other' }))
      expect(id).toBe('chatcmpl-other');
    const [a, b] = [await ask(runtime, PARIS), await ask(runtime, PARIS)];
    expect(a.id).toMatch(/^chatcmpl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(a.id).not.toBe(b.id);
  });

  it('is the trace id where it has none, which many may have at once', async () => {
    const messages = [{ role: 'user' as const, content: PARIS }];
    const request = { messages, max_tokens: 3 };
    const ids = await Promise.all(
      [0, 1].map(async () => (await runtime.createCompletion(request, { traceId: 'trace' })).id),
    );
    expect(ids).toEqual(['chatcmpl-trace', 'chatcmpl-trace']);
    const own = { ...request, request_id: 'own' };
    expect((await runtime.createCompletion(own, { traceId: 'trace' })).id).toBe('chatcmpl-own');
    for (const options of [{ traceId: '' }, { traceId: 'a\nb' }, { signal: 5 }, { sginal: null }, null])
      await expect(runtime.createCompletion(request, options as never)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: options ? `options.${Object.keys(options)[0]}` : 'options',
      });
  });

  it('of a request that still runs is refused, and free again when that has ended, however it did', async () => {
    const twice = { request_id: 'twice' };
    const refused = { code: 'INVALID_REQUEST', param: 'request_id', status: 400 };
    const first = ask(runtime, PARIS, twice);
    await expect(ask(runtime, PARIS, twice)).rejects.toMatchObject(refused);
    expect((await first).choices[0]!.message.content).toBe('The capital of France is Paris.');
    await ask(runtime, PARIS, twice);
    await expect(ask(runtime, PARIS, { ...twice, max_tokens: 100_000 })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
    });
    await expect(ask(runtime, PARIS, { ...twice, model: 'nothing-here' })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
    });
    const controller = new AbortController();
    const request = { messages: [{ role: 'user' as const, content: PARIS }], ...LONG, ...twice };
    const aborted = runtime.createCompletion(request, { signal: controller.signal });
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    for await (const _ of await runtime.createCompletion({ ...request, stream: true })) {
      await expect(ask(runtime, PARIS, twice)).rejects.toMatchObject(refused);
      break; // leaving the loop ends the request
    }
    await ask(runtime, PARIS, { ...twice, use_beam_search: true, n: 2 });
    await ask(runtime, PARIS, twice);
  });
});

describe('cache_salt', () => {
  it('isolates prefixes: nothing is reused across salts, all of it within one, and the time shows it', async () => {
    await using on = await createRuntime({ threads: 1, contextSize: 1024 });
    const timed = async (question: string, cache_salt?: string) => {
      const before = on.stats().promptTokens;
      const startMs = performance.now();
      const { usage } = await ask(on, question, { max_tokens: 1, ...(cache_salt ? { cache_salt } : {}) });
      const ms = performance.now() - startMs;
      const computed = on.stats().promptTokens - before;
      expect(computed).toBe(usage.prompt_tokens - usage.prompt_tokens_details!.cached_tokens);
      return { ms, computed, prompt: usage.prompt_tokens };
    };
    await timed('warm up');
    const best = (times: readonly { ms: number }[]): number => Math.min(...times.map(({ ms }) => ms));
    const own: { ms: number }[] = [];
    const shared: { ms: number }[] = [];
    for (let round = 0; round < 4; round++) {
      const question = `Remember round ${round}: ${'blue red '.repeat(400)}`;
      for (const salt of [undefined, 'one', 'two']) {
        const cold = await timed(question, salt);
        expect(cold.prompt).toBeGreaterThan(600);
        expect(cold.computed).toBeGreaterThan(cold.prompt - 30); // of another round, at most the words before the number
        const warm = await timed(question, salt);
        expect(warm.computed).toBe(1); // the last token's logits are needed
        own.push(cold);
        shared.push(warm);
      }
    }
    expect(best(shared)).toBeLessThan(0.5 * best(own));
  });

  it('is a text that is not empty', async () => {
    await expect(ask(runtime, PARIS, { cache_salt: '' })).rejects.toMatchObject({ param: 'cache_salt' });
  });
});

describe('special tokens', () => {
  it('spaces_between_special_tokens: false drops the space that one begins with behind another', async () => {
    const file = path.join(folder, 'spaced.gguf');
    const bytes = fs.readFileSync(EMBEDDED_MODEL);
    bytes.write(' |im_start|>', bytes.indexOf('<|im_start|>')); // its text in the list of tokens now begins with a space
    fs.writeFileSync(file, bytes);
    await using on = await createRuntime({ threads: 1, model: file });
    const id = await specialId(runtime, '<|im_start|>');
    const [letter] = await runtime.tokenize('a');
    const end = await specialId(runtime, '<|im_end|>');
    const text = async (fields: Fields): Promise<string | null> =>
      (
        await ask(on, 'x', {
          chat_template: PLAIN,
          logits_processors: [onlyThese([id, id, letter!, id, id], end)],
          ...fields,
        })
      ).choices[0]!.message.content;
    const shown = { skip_special_tokens: false };
    expect(await text(shown)).toBe(' |im_start|> |im_start|>a |im_start|> |im_start|>');
    expect(await text({ ...shown, spaces_between_special_tokens: false })).toBe(
      ' |im_start|>|im_start|>a |im_start|>|im_start|>',
    );
    expect(await text({ spaces_between_special_tokens: false })).toBe('a');
    const stopped = { ...shown, spaces_between_special_tokens: false, stop: ['>|im'] };
    expect(await text(stopped)).toBe(' |im_start|');
  });

  it('add_special_tokens: adds what the model wants around a text, only then', async () => {
    const file = path.join(folder, 'begins.gguf');
    const bytes = fs.readFileSync(EMBEDDED_MODEL);
    const key = 'tokenizer.ggml.add_bos_token';
    bytes[bytes.indexOf(key) + key.length + 4] = 1; // behind the type: the model now wants a first token
    fs.writeFileSync(file, bytes);
    await using on = await createRuntime({ threads: 1, model: file });
    const prompt = async (fields: Fields): Promise<number[]> =>
      (await ask(on, 'x', { chat_template: PLAIN, max_tokens: 1, return_token_ids: true, ...fields }))
        .prompt_token_ids!;
    expect(await prompt({})).toEqual(await on.tokenize('x'));
    expect(await prompt({ add_special_tokens: true })).toEqual(
      await on.tokenize('x', { addSpecialTokens: true }),
    );
    const [first] = await on.tokenize('', { addSpecialTokens: true });
    expect(await prompt({ add_special_tokens: true })).toEqual([first, ...(await prompt({}))]);
    // added tokens count among those that truncation leaves, and stay
    const messages = [{ role: 'user' as const, content: 'one two three four five six' }];
    const whole = await prompt({ messages });
    const cut = { messages, add_special_tokens: true, truncate_prompt_tokens: 4 };
    expect(await prompt(cut)).toEqual([first, ...whole.slice(-3)]);
    expect(await prompt({ ...cut, add_special_tokens: false })).toEqual(whole.slice(-4));
    expect(await prompt({ ...cut, truncate_prompt_tokens: 1 })).toEqual([first]);
  });
});

describe('fields that OpenAI clients send', () => {
  it('change nothing', async () => {
    const fields: Fields = {
      user: 'somebody',
      audio: { voice: 'x' },
      metadata: { a: 'b' },
      modalities: ['text'],
      moderation: {},
      prompt_cache_key: 'key',
      prompt_cache_options: {},
      prompt_cache_retention: '24h',
      safety_identifier: 'id',
      service_tier: 'flex',
      store: true,
      verbosity: 'high',
      web_search_options: {},
    };
    const same = { id: '', created: 0, usage: null, seed: null };
    const plain = await ask(runtime, PARIS);
    expect({ ...(await ask(runtime, PARIS, fields)), ...same }).toEqual({ ...plain, ...same });
  });
});

describe('the prefix cache and pools', () => {
  it('skip_reading_prefix_cache computes the whole prompt, and later requests use it', async () => {
    const question = `Remember this: ${'blue red '.repeat(60)}`;
    const cachedOf = async (fields: Fields): Promise<number> => {
      const { usage } = await ask(runtime, question, { max_tokens: 2, ...fields });
      return usage.prompt_tokens_details!.cached_tokens;
    };
    const skip = { skip_reading_prefix_cache: true, cache_salt: 'skipped' };
    expect(await cachedOf(skip)).toBe(0);
    expect(await cachedOf({ cache_salt: 'skipped' })).toBeGreaterThan(100);
    expect(await cachedOf(skip)).toBe(0);
    expect(await cachedOf({ ...skip, n: 3, temperature: 1 })).toBe(0);
    expect(await cachedOf({ cache_salt: 'skipped' })).toBeGreaterThan(100);
  });

  it('session_id keeps requests of a session at one member of a pool', async () => {
    await using one = await createRuntime({ threads: 1 });
    await using other = await createRuntime({ threads: 1 });
    const members = [one, other];
    const pool = createPool(members);
    const askOf = async (content: string, session_id: string | null): Promise<boolean[]> => {
      const before = members.map((member) => member.stats().promptTokens);
      await pool.createCompletion({ messages: [{ role: 'user', content }], max_tokens: 1, session_id });
      return members.map((member, i) => member.stats().promptTokens > before[i]!);
    };
    const first = await askOf('One thing', 'mine');
    for (const content of ['Another', 'A third', 'And more'])
      expect(await askOf(content, 'mine')).toEqual(first);
    const others = [await askOf('b', null), await askOf('c', null)];
    expect(others[0]).not.toEqual(others[1]);
  });

  it.each(['watermarking', 'ec_transfer_params', 'flat_logprobs'])(
    '%s is refused by its name',
    async (field) => {
      await expect(ask(runtime, 'Hi', { [field]: true })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(`${field}: expected no value: \\w.*, got true`),
      });
    },
  );
});
