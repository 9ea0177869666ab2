/** Text completions of the embedded model, by OpenAI's client and in process: texts, ids, echo, log-probabilities, streams. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TextCompletion, TextCompletionRequest } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, serve } from '../../../src/serve/http/index.ts';
import { EXACT_MODEL } from '../fields/model.ts';

let runtime: Runtime;
let client: OpenAI;
let rendered: string; // a prompt whose answer is known
let ids: number[];
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 512, speculation: false });
  client = new OpenAI({
    fetch: runtime.fetch,
    baseURL: 'http://in-process/v1',
    apiKey: 'any',
    maxRetries: 0,
  });
  const messages = [{ role: 'user' as const, content: 'What is the capital of Peru?' }];
  ({ prompt: rendered, prompt_token_ids: ids } = await runtime.renderPrompt({ messages }));
});
afterAll(() => runtime.close());

const MODEL = 'onpolicy-tiny';
const LIMA = 'The capital of Peru is Lima.';
const GREEDY = { temperature: 0, add_special_tokens: false } as const;
const complete = (request: Partial<TextCompletionRequest>): Promise<TextCompletion> =>
  runtime.createTextCompletion({ prompt: rendered, ...GREEDY, ...request, stream: false });

/** A whole answer, and the same joined from its stream. */
async function both(
  request: Partial<TextCompletionRequest>,
): Promise<[TextCompletion['choices'], TextCompletion['choices']]> {
  const asked = { model: EXACT_MODEL, prompt: 'One', ...GREEDY, seed: 7, ...request };
  const { choices } = await runtime.createTextCompletion({ ...asked, stream: false });
  const joined: TextCompletion['choices'] = [];
  for await (const chunk of await runtime.createTextCompletion({ ...asked, stream: true }))
    for (const {
      index,
      text,
      logprobs,
      finish_reason,
      stop_reason,
      prompt_token_ids,
      token_ids,
    } of chunk.choices) {
      const known = joined[index];
      if (!known) {
        joined[index] = {
          index,
          text,
          logprobs,
          finish_reason,
          stop_reason: stop_reason ?? null,
          prompt_logprobs: null,
          prompt_token_ids: prompt_token_ids ?? null,
          token_ids,
        };
        continue;
      }
      known.text += text;
      known.finish_reason = finish_reason ?? known.finish_reason;
      known.stop_reason = stop_reason ?? known.stop_reason;
      known.token_ids?.push(...(token_ids ?? []));
      for (const [field, values] of Object.entries(logprobs ?? {}))
        (known.logprobs![field as 'tokens'] as unknown[]).push(...(values as unknown[]));
    }
  return [choices, joined];
}

describe("by OpenAI's client", () => {
  it('whole', async () => {
    const answer = await client.completions.create({ model: MODEL, prompt: rendered, temperature: 0 });
    expect(answer.choices).toMatchObject([{ text: LIMA, index: 0, finish_reason: 'stop', logprobs: null }]);
    expect(answer).toMatchObject({
      object: 'text_completion',
      model: MODEL,
      usage: { completion_tokens: 10 },
    });
    expect(answer.id).toMatch(/^cmpl-/);
  });

  it('streamed, with the usage last', async () => {
    let text = '';
    let usage: OpenAI.CompletionUsage | undefined;
    const stream = await client.completions.create({
      model: MODEL,
      prompt: rendered,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? '';
      usage = chunk.usage ?? usage;
    }
    expect([text, usage!.completion_tokens]).toEqual([LIMA, 10]);
  });

  it('with the error that it knows', async () => {
    const wrong = client.completions.create({ model: MODEL, prompt: [1, 10 ** 7] });
    await expect(wrong).rejects.toMatchObject({ status: 400, param: 'prompt.1' });
  });
});

describe('prompts', () => {
  it('are a text, ids, texts or lists of ids', async () => {
    for (const prompt of [rendered, ids, [rendered], [ids]])
      expect((await complete({ prompt })).choices.map(({ text }) => text)).toEqual([LIMA]);
  });

  it('of a list have n choices each, in order', async () => {
    const other = rendered.replace('Peru', 'Egypt');
    const { choices, usage } = await complete({
      prompt: [other, rendered],
      n: 2,
      temperature: 0.01,
      seed: 1,
    });
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'The capital of Egypt is Cairo.'],
      [1, 'The capital of Egypt is Cairo.'],
      [2, LIMA],
      [3, LIMA],
    ]);
    const alone = await Promise.all([other, rendered].map((prompt) => complete({ prompt })));
    expect(usage.prompt_tokens).toBe(alone[0]!.usage.prompt_tokens + alone[1]!.usage.prompt_tokens);
    expect(usage.completion_tokens).toBe(
      2 * alone.reduce((sum, one) => sum + one.usage.completion_tokens, 0),
    );
  });

  it('have 16 tokens by default, and the rest of the context with null', async () => {
    const endless = { ignore_eos: true };
    expect((await complete(endless)).usage.completion_tokens).toBe(16);
    expect((await complete({ ...endless, max_tokens: null })).usage.total_tokens).toBe(512);
  });

  it('are answered together or not at all', async () => {
    const long = Array.from({ length: 600 }, () => 5);
    const refused = complete({ prompt: [ids, long], max_tokens: null, ignore_eos: true });
    await expect(refused).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW', param: 'prompt.1' });
    await expect(refused).rejects.toThrow(/^prompt\.1: the prompt has 600 tokens.* Shorten it by/);
    await expect.poll(() => runtime.stats().running + runtime.stats().waiting).toBe(0);
    await complete({ request_id: 'mine', prompt: [ids, ids] });
    await expect(complete({ request_id: 'mine' })).resolves.toMatchObject({ id: 'cmpl-mine' });
  });
});

describe('echo and log-probabilities', () => {
  it.each([
    ['alone', { logprobs: 2 }],
    ['of the prompt too', { logprobs: 2, echo: true, prompt: 'Straße — 🦙 von' }],
    ['of ids', { logprobs: 0, echo: true, prompt: [300, 301, 302] }],
    [
      'of two prompts with two choices',
      { logprobs: 1, echo: true, n: 2, temperature: 1, prompt: ['one', 'two'] },
    ],
    ['of a prompt that was read before', { logprobs: 1, echo: true }],
  ])('stand at their place in the text: %s', async (_, request) => {
    for (const choices of await both({ max_tokens: 8, ...request }))
      for (const { text, logprobs } of choices) {
        const { tokens, text_offset, token_logprobs, top_logprobs } = logprobs!;
        const characters = [...text];
        expect(
          new Set([tokens.length, text_offset.length, token_logprobs.length, top_logprobs.length]).size,
        ).toBe(1);
        expect(text_offset).toEqual(text_offset.toSorted((a, b) => a - b));
        for (const [i, token] of tokens.entries()) {
          if (text.includes('\ufffd') || token.startsWith('<|')) continue;
          expect(characters.slice(text_offset[i]!, text_offset[i]! + [...token].length).join('')).toBe(token);
          if (top_logprobs[i]) expect(top_logprobs[i]).toHaveProperty([token], token_logprobs[i]);
        }
      }
  });

  it.each([
    ['plain', {}],
    ['with an echo', { echo: true }],
    ['with an echo, log-probabilities and two choices', { echo: true, logprobs: 1, n: 2, temperature: 1 }],
    ['with ids', { return_token_ids: true, echo: true }],
    ['of several prompts', { prompt: ['one', 'two', 'three'], logprobs: 0 }],
    ['of nothing', { max_tokens: 0, echo: true, logprobs: 1 }],
    ['with a stop text', { stop: ['of'] }],
  ])('are the same in a stream: %s', async (_, request) => {
    const [whole, joined] = await both(request);
    expect(joined).toEqual(whole);
  });

  it('of a prompt alone are those of prompt_logprobs', async () => {
    const prompt = 'The capital of Peru is Lima.';
    const { choices, usage } = await complete({ prompt, echo: true, logprobs: 1, max_tokens: 0 });
    const { text, logprobs, finish_reason } = choices[0]!;
    expect({ text, finish_reason, tokens: usage.completion_tokens }).toEqual({
      text: prompt,
      finish_reason: 'length',
      tokens: 0,
    });
    const scored = await complete({ prompt, prompt_logprobs: 0, return_token_ids: true, max_tokens: 1 });
    const { prompt_token_ids, prompt_logprobs } = scored.choices[0]!;
    expect(logprobs!.token_logprobs).toEqual(
      prompt_logprobs!.map((entry, i) => entry && entry[prompt_token_ids![i]!]!.logprob),
    );
    expect(Object.keys(prompt_logprobs![1]!)).toHaveLength(1);
  });
});

it('a connected server gives the same, whole and streamed', async () => {
  const server = await serve(runtime, { maxLogprobs: null });
  await using remote = connect({ baseUrl: server.url });
  const asked = { ...GREEDY, model: EXACT_MODEL, prompt: ['one', 'two'], echo: true, logprobs: 2 };
  const { choices } = await remote.createTextCompletion!({ ...asked, stream: false });
  expect(choices).toEqual((await runtime.createTextCompletion({ ...asked, stream: false })).choices);
  const texts = choices.map(() => '');
  for await (const chunk of await remote.createTextCompletion!({ ...asked, stream: true }))
    for (const { index, text } of chunk.choices) texts[index] += text;
  expect(texts).toEqual(choices.map(({ text }) => text));
  const wrong = remote.createTextCompletion!({ prompt: [[1, 10 ** 7]], stream: false });
  await expect(wrong).rejects.toMatchObject({ code: 'INVALID_REQUEST', param: 'prompt.0.1' });
  await server.close();
});

it('best_of gives the most probable choices', async () => {
  const asked = { temperature: 1.5, seed: 3, logprobs: 0, max_tokens: 12 };
  const { choices: all } = await complete({ ...asked, n: 8 });
  const { choices: best, usage } = await complete({ ...asked, n: 2, best_of: 8 });
  const mean = ({ logprobs }: (typeof all)[number]) =>
    logprobs!.token_logprobs.reduce((sum: number, one: number) => sum + one, 0) / logprobs!.tokens.length;
  const sorted = all.toSorted((one, other) => mean(other) - mean(one)).slice(0, 2);
  expect(best.map(({ text }) => text)).toEqual(sorted.map(({ text }) => text));
  expect(best.map(({ index }) => index)).toEqual([0, 1]);
  expect(usage.completion_tokens).toBeGreaterThan(
    best.reduce((sum, { logprobs }) => sum + logprobs!.tokens.length, 0),
  );
});

it('structured outputs and sampling fields have their effect', async () => {
  const { choices } = await complete({ structured_outputs: { regex: '[0-9]{4}' } });
  expect(choices[0]!.text).toMatch(/^[0-9]{4}$/);
  const forced = await complete({
    logit_bias: { [ids[0]!]: 100 },
    max_tokens: 3,
    skip_special_tokens: false,
    return_token_ids: true,
  });
  expect(forced.choices[0]!.token_ids).toEqual([ids[0], ids[0], ids[0]]);
});

it('a suffix is refused where the model has no tokens for it', async () => {
  const refused = complete({ suffix: 'after' });
  await expect(refused).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'suffix' });
});

it.each([true, false])('an abort ends it, stream: %s', async (stream) => {
  const controller = new AbortController();
  const { signal } = controller;
  const prompt = [ids, ids];
  const asked = { prompt, max_tokens: 400, ignore_eos: true };
  const reading = (async () => {
    if (!stream) return await runtime.createTextCompletion({ ...asked, stream: false }, { signal });
    for await (const _ of await runtime.createTextCompletion({ ...asked, stream: true }, { signal }));
    return null;
  })();
  await expect.poll(() => runtime.stats().running, { interval: 2 }).toBe(2);
  controller.abort();
  await expect(reading).rejects.toMatchObject({ code: 'ABORTED' });
  for await (const _ of await runtime.createTextCompletion({ ...asked, stream: true })) break;
  await expect.poll(() => runtime.stats().running).toBe(0);
});
