/** Anthropic's client, unmodified, on the embedded model: text, tools, streams, errors, counts. */
import Anthropic, { BadRequestError, NotFoundError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  ChatCompletionRequest,
  MessageResponse,
  MessageStreamEvent,
  MessageUsage,
} from '../../../../src/protocol/index.ts';
import type { CallOptions } from '../../../../src/protocol/service/index.ts';
import { record } from '../../../../src/rl/rollout/index.ts';
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts';
import { createHandler, serve } from '../../../../src/serve/http/index.ts';
import { createMessage } from '../../../../src/serve/wires/index.ts';

let runtime: Runtime;
let client: Anthropic;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 512 });
  client = new Anthropic({
    fetch: runtime.fetch,
    baseURL: 'http://in-process',
    apiKey: 'any',
    maxRetries: 0,
  });
});
afterAll(() => runtime.close());

const model = 'onpolicy-tiny';
const user = (content: string) => [{ role: 'user' as const, content }];
const CAPITAL = { model, max_tokens: 40, temperature: 0, messages: user('What is the capital of Peru?') };
const LIMA = 'The capital of Peru is Lima.';
const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
};
const ASK_WEATHER = { ...CAPITAL, messages: user('What is the weather in Paris?'), tools: [WEATHER] };

it("has answers of the client's own types", () => {
  const message = {} as MessageResponse;
  const event = {} as Exclude<MessageStreamEvent, { type: 'ping' }>;
  const usage = {} as MessageUsage;
  message satisfies Anthropic.Message;
  event satisfies Anthropic.RawMessageStreamEvent;
  usage satisfies Anthropic.Usage;
  expect(message).toEqual(event);
});

describe("Anthropic's client", () => {
  it('gets a message', async () => {
    const { data: message, request_id } = await client.messages.create(CAPITAL).withResponse();
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: LIMA }],
      stop_reason: 'end_turn',
      usage: { output_tokens: 10 },
    });
    expect(message.id).toBe(`msg_${request_id}`);
  });

  it('gets the events of a stream in their order', async () => {
    const types: string[] = [];
    let text = '';
    const stream = await client.messages.create({ ...CAPITAL, stream: true });
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text;
      if (event.type === 'message_delta')
        expect(event).toMatchObject({ delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 10 } });
    }
    expect(text).toBe(LIMA);
    expect(types.filter((type, i) => type !== types[i - 1])).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    const whole = await client.messages.stream(CAPITAL).finalMessage();
    expect(whole.content).toMatchObject([{ type: 'text', text: LIMA }]);
  });

  it('calls tools, whole and streamed, and goes on with their results', async () => {
    const whole = await client.messages.create(ASK_WEATHER);
    const streamed = await client.messages.stream(ASK_WEATHER).finalMessage();
    for (const { content, stop_reason } of [whole, streamed]) {
      expect(content.at(-1)).toMatchObject({
        type: 'tool_use',
        name: 'get_weather',
        input: { city: 'Paris' },
      });
      expect(stop_reason).toBe('tool_use');
    }
    const call = whole.content.find((block) => block.type === 'tool_use')!;
    const next = await client.messages.create({
      ...ASK_WEATHER,
      messages: [
        ...ASK_WEATHER.messages,
        { role: 'assistant', content: whole.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }] },
      ],
    });
    expect(next.content.length).toBeGreaterThan(0);
    const city = { type: 'string', enum: ['Lima', 'Paris'] };
    const strict = {
      ...WEATHER,
      input_schema: { ...WEATHER.input_schema, properties: { city }, additionalProperties: false },
    };
    const forced = {
      ...CAPITAL,
      max_tokens: 100,
      tools: [strict],
      tool_choice: { type: 'tool' as const, name: 'get_weather' },
    };
    expect((await client.messages.create(forced)).stop_reason).toBe('tool_use');
  });

  it('gets an answer that follows a schema', async () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer' } },
      required: ['age'],
      additionalProperties: false,
    };
    const { content } = await client.messages.create({
      ...CAPITAL,
      output_config: { format: { type: 'json_schema', schema } },
    });
    const [block] = content;
    expect(JSON.parse((block as Anthropic.TextBlock).text)).toEqual({ age: expect.any(Number) as number });
  });

  it('is told why an answer ended', async () => {
    const stopped = await client.messages.create({ ...CAPITAL, stop_sequences: [' Peru'] });
    expect(stopped).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: ' Peru',
      content: [{ text: 'The capital of' }],
    });
    const cut = { ...CAPITAL, max_tokens: 3 };
    expect((await client.messages.create(cut)).stop_reason).toBe('max_tokens');
    const endless = { ...CAPITAL, max_tokens: 20_000, ignore_eos: true };
    expect((await client.messages.create(endless)).stop_reason).toBe('model_context_window_exceeded');
    const { stop_reason } = await client.messages.stream({ ...endless, max_tokens: 32_000 }).finalMessage();
    expect(stop_reason).toBe('model_context_window_exceeded');
  });

  it.each([
    ['a runtime once', (options?: CallOptions) => options, 1],
    ['a service without the option again, without a limit', () => undefined, 2],
  ])('with a limit above the context asks %s', async (_, optionsOf, times) => {
    let asked = 0;
    const createCompletion = (request: ChatCompletionRequest, options?: CallOptions) => {
      asked += 1;
      return runtime.createCompletion(request, optionsOf(options));
    };
    const endless = { ...CAPITAL, max_tokens: 20_000, ignore_eos: true };
    const message = await createMessage({ createCompletion } as Runtime, endless);
    expect(message).toMatchObject({ stop_reason: 'model_context_window_exceeded' });
    expect(asked).toBe(times);
  });

  it('goes on with an answer that was begun', async () => {
    const messages = [...CAPITAL.messages, { role: 'assistant' as const, content: 'The capital of' }];
    const { content } = await client.messages.create({ ...CAPITAL, messages });
    expect(content).toMatchObject([{ type: 'text', text: ' Peru is Lima.' }]);
  });

  it('is told at the begin and at the end how much was cached', async () => {
    const asked = { ...CAPITAL, messages: user('What is the capital of Chile?'), stream: true as const };
    await client.messages.create({ ...asked, stream: false });
    const usages: (number | null)[] = [];
    for await (const event of await client.messages.create(asked)) {
      if (event.type === 'message_start') usages.push(event.message.usage.cache_read_input_tokens);
      if (event.type === 'message_delta') usages.push(event.usage.cache_read_input_tokens);
    }
    expect(usages).toEqual([usages[0], usages[0]]);
    expect(usages[0]).toBeGreaterThan(5);
  });

  it('gets calls, or a text that fits its format, whole and streamed', async () => {
    const schema = {
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'integer' } },
      required: ['name', 'age'],
      additionalProperties: false,
    };
    const asked = { ...ASK_WEATHER, output_config: { format: { type: 'json_schema' as const, schema } } };
    const messages = user('Extract the name and age as JSON: Omar is 26 years old and lives in Delhi.');
    for (const ask of [
      (body: typeof asked) => client.messages.create(body),
      (body: typeof asked) => client.messages.stream(body).finalMessage(),
    ]) {
      expect((await ask(asked)).content).toMatchObject([{ type: 'tool_use', input: { city: 'Paris' } }]);
      const [block, ...others] = (await ask({ ...asked, messages })).content;
      if (block?.type !== 'text') throw new Error('expected a text');
      expect([JSON.parse(block.text), others]).toEqual([{ name: 'Omar', age: 26 }, []]);
    }
  });

  it('calls tools whose schema it does not send', async () => {
    const tools = [{ type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' }] as const;
    const { content } = await client.messages.create({
      ...CAPITAL,
      tools: [...tools],
      tool_choice: { type: 'any' },
      max_tokens: 200,
    });
    expect(content.at(-1)).toMatchObject({ type: 'tool_use', name: tools[0].name });
    const served = { ...CAPITAL, tools: [{ type: 'web_search_20250305', name: 'web_search' }] };
    await expect(client.messages.create(served as never)).rejects.toThrow(
      /tools\.0\.type: expected custom, null, bash_\*/,
    );
  });

  it('lists models, page by page', async () => {
    const listed = await client.models.list();
    const { id, display_name, type, max_input_tokens, created_at } = listed.data[0]!;
    expect([id, display_name, type, max_input_tokens]).toEqual([model, model, 'model', 512]);
    expect(new Date(created_at).getTime()).toBe(0);
    expect([listed.has_more, listed.first_id]).toEqual([false, model]);
    expect((await client.models.retrieve(model)).id).toBe(model);
    expect((await client.models.list({ limit: 1, after_id: model })).data).toEqual([]);
    await expect(client.models.list({ limit: 0 })).rejects.toThrow(
      'limit: expected an integer from 1 to 1000',
    );
    const response = await runtime.fetch('http://in-process/v1/models');
    expect(await response.json()).toMatchObject({
      object: 'list',
      data: [{ id: model, max_model_len: 512 }],
    });
  });

  it('counts tokens as they are used', async () => {
    const { usage } = await client.messages.create(CAPITAL);
    const used = usage.input_tokens + usage.cache_read_input_tokens!;
    const { max_tokens: _, temperature: _t, ...counted } = CAPITAL;
    expect(await client.messages.countTokens(counted)).toEqual({ input_tokens: used });
    expect(await runtime.countMessageTokens(counted)).toEqual({ input_tokens: used });
  });

  it('ends what it aborts', async () => {
    const stream = client.messages.stream({
      ...CAPITAL,
      max_tokens: 400,
      ignore_eos: true,
    } as Anthropic.MessageStreamParams);
    stream.on('text', () => stream.abort());
    await expect(stream.finalMessage()).rejects.toThrow(/aborted/i);
    await expect.poll(() => runtime.stats().running, { interval: 5 }).toBe(0);
  });
});

describe('errors', () => {
  it.each([
    [
      'of a field',
      { ...CAPITAL, max_tokens: 0 },
      BadRequestError,
      /max_tokens: expected an integer >= 1, got 0/,
    ],
    [
      'of a rule of chats',
      { ...CAPITAL, tool_choice: { type: 'tool' as const, name: 'x' }, tools: [WEATHER] },
      BadRequestError,
      /tool_choice\.name: expected/,
    ],
    [
      'of a block',
      {
        ...CAPITAL,
        messages: [
          {
            role: 'user' as const,
            content: [
              {
                type: 'image' as const,
                source: { type: 'base64' as const, media_type: 'image/png' as const, data: 'AA' },
              },
            ],
          },
        ],
      },
      BadRequestError,
      /messages\.0\.content\.0/,
    ],
    ['of a model', { ...CAPITAL, model: 'none' }, NotFoundError, /none/],
  ])('are those that the client knows: %s', async (_, request, kind, message) => {
    for (const stream of [false, true]) {
      const error = await client.messages.create({ ...request, stream }).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(kind);
      expect((error as Error).message).toMatch(message);
      expect((error as BadRequestError).error).toMatchObject({
        type: 'error',
        error: { type: expect.stringMatching(/_error$/) as string },
      });
    }
  });

  it('of a wrong key', async () => {
    const server = await serve(runtime, { tokens: ['secret'] });
    const open = new Anthropic({ baseURL: server.url, apiKey: 'secret', maxRetries: 0 });
    expect((await open.messages.create(CAPITAL)).content).toMatchObject([{ text: LIMA }]);
    const closed = new Anthropic({ baseURL: server.url, apiKey: 'wrong', maxRetries: 0 });
    await expect(closed.messages.create(CAPITAL)).rejects.toMatchObject({
      status: 401,
      error: { error: { type: 'authentication_error' } },
    });
    await server.close();
  });

  it('in a stream are an event', async () => {
    const failing = {
      createCompletion: async () => {
        throw new Error('broken');
      },
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
    const response = await createHandler(failing as never)(
      new Request('http://localhost/v1/messages', { method: 'POST', body: JSON.stringify(CAPITAL) }),
    );
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type: 'api_error', message: 'the server failed' },
    });
  });

  it('name fields in process', async () => {
    await expect(runtime.createMessage({ ...CAPITAL, max_token: 5 } as never)).rejects.toMatchObject({
      param: 'max_token',
    });
  });
});

it('a recorder records its requests', async () => {
  const recorder = record(runtime, { model });
  const recorded = new Anthropic({ fetch: recorder.fetch, baseURL: 'http://recorded', apiKey: 'any' });
  await recorded.messages.create(CAPITAL);
  const { messages_and_choices } = recorder.finish({ reward: 1 });
  expect(messages_and_choices[1]).toMatchObject({
    message: { content: LIMA },
    token_ids: expect.any(Array) as number[],
  });
});
