/** The official OpenAI client, unmodified, against the embedded model behind a server. */
import OpenAI, { APIUserAbortError, AuthenticationError, BadRequestError, NotFoundError } from 'openai';
import { CursorPage } from 'openai/core/pagination';
import { zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Checkpoint } from '../../src/protocol/index.ts';
import { openServed, type Served, TOKEN } from './served.ts';

let served: Served;
let client: OpenAI;
beforeAll(async () => {
  served = await openServed();
  client = new OpenAI({ baseURL: served.baseURL, apiKey: TOKEN, maxRetries: 0 });
});
afterAll(() => served.close());

const CAPITAL = {
  model: 'tiny',
  messages: [{ role: 'user' as const, content: 'What is the capital of Peru?' }],
  temperature: 0,
};
const ENDLESS = {
  model: 'tiny',
  messages: [{ role: 'user' as const, content: 'Tell me a story.' }],
  ignore_eos: true, // a field of ours: the client sends it as it is
};
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const isIdle = () => expect.poll(() => served.runtime.stats().running, { interval: 5 }).toBe(0);

describe('completions', () => {
  it('plain', async () => {
    const { data, request_id, response } = await client.chat.completions.create(CAPITAL).withResponse();
    expect(data.choices[0]!.message.content).toBe('The capital of Peru is Lima.');
    expect(data.choices[0]!.finish_reason).toBe('stop');
    expect(data).toMatchObject({
      object: 'chat.completion',
      model: 'tiny',
      usage: { completion_tokens: 10 },
    });
    expect(data.id).toBe(`chatcmpl-${request_id}`);
    expect(response.status).toBe(200);
  });

  it('streamed', async () => {
    const stream = await client.chat.completions.create({
      ...CAPITAL,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let tokens: number | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
    expect([text, tokens]).toEqual(['The capital of Peru is Lima.', 10]);
  });

  it('with the stream helper', async () => {
    const stream = client.chat.completions.stream({ ...CAPITAL, logprobs: true, top_logprobs: 2 });
    expect(await stream.finalContent()).toBe('The capital of Peru is Lima.');
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]!.logprobs!.content).toHaveLength(10);
  });

  it('parsed', async () => {
    const Person = z.object({ name: z.string(), age: z.number(), city: z.string() });
    const { choices } = await client.chat.completions.parse({
      model: 'tiny',
      messages: [
        {
          role: 'user',
          content: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
        },
      ],
      temperature: 0,
      response_format: zodResponseFormat(Person, 'person'),
    });
    expect(choices[0]!.message.parsed).toEqual({ name: 'Omar', age: 26, city: 'Delhi' });
  });

  it('with tools that the helper runs', async () => {
    const asked: unknown[] = [];
    const runner = client.chat.completions.runTools(
      {
        model: 'tiny',
        messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
        temperature: 0,
        max_completion_tokens: 40,
        tools: [
          {
            type: 'function',
            function: {
              name: 'get_weather',
              description: 'The weather of a city',
              parameters,
              parse: JSON.parse,
              function: (given: { city: string }) => {
                asked.push(given);
                return 'sunny';
              },
            },
          },
        ],
      },
      { maxChatCompletions: 2 },
    );
    await runner.done();
    expect(asked[0]).toEqual({ city: 'Paris' });
    expect(runner.messages.map(({ role }) => role)).toEqual(
      expect.arrayContaining(['user', 'assistant', 'tool']),
    );
  });

  it('aborted', async () => {
    const controller = new AbortController();
    const whole = client.chat.completions.create(ENDLESS, { signal: controller.signal });
    await expect.poll(() => served.runtime.stats().running, { interval: 2 }).toBe(1);
    controller.abort();
    await expect(whole).rejects.toBeInstanceOf(APIUserAbortError);
    await isIdle();
    const stream = await client.chat.completions.create({ ...ENDLESS, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await isIdle();
  });
});

describe('errors are those that the client knows', () => {
  it.each([
    [
      'a faulty field',
      { ...CAPITAL, n: 0 },
      BadRequestError,
      { status: 400, param: 'n', code: 'INVALID_REQUEST' },
    ],
    [
      'an unknown model',
      { ...CAPITAL, model: 'none' },
      NotFoundError,
      { status: 404, code: 'MODEL_NOT_FOUND' },
    ],
  ])('%s', async (_, request, kind, fields) => {
    const error = await client.chat.completions.create(request).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject(fields);
  });

  it('a wrong key', async () => {
    const other = new OpenAI({ baseURL: served.baseURL, apiKey: 'wrong', maxRetries: 0 });
    await expect(other.chat.completions.create(CAPITAL)).rejects.toBeInstanceOf(AuthenticationError);
  });
});

describe('lists', () => {
  it('of models', async () => {
    const ids: string[] = [];
    for await (const { id } of client.models.list()) ids.push(id);
    expect(ids).toEqual(['tiny']);
    expect(await client.models.retrieve('tiny')).toMatchObject({ id: 'tiny', object: 'model' });
  });

  it('of checkpoints, page by page', async () => {
    const { models, train } = served.memory;
    const { id } = await models.create({ base_model: 'tiny' });
    for (let i = 0; i < 25; i++) await (await train({ model_id: id, trajectory_groups: [] })).done;
    const steps: number[] = [];
    const path = `/preview/models/${id}/checkpoints`;
    const pages = client.getAPIList(path, CursorPage, { query: { limit: 10, order: 'asc' } });
    for await (const checkpoint of pages) steps.push((checkpoint as Checkpoint).step);
    expect(steps).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(served.memory.calls.filter((call) => call === 'checkpoints.list')).toHaveLength(3);
    await models.delete(id);
  });
});
