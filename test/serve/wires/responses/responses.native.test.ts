/** OpenAI's client, Vercel's provider for it and its agents, unmodified, on the responses of the embedded model. */
import { createOpenAI } from '@ai-sdk/openai';
import { Agent, tool as agentTool, OpenAIProvider, Runner } from '@openai/agents';
import { generateObject, generateText, type ModelMessage, stepCountIs, streamText, tool } from 'ai';
import OpenAI, { BadRequestError, NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ResponseObject, ResponseStreamEvent, ResponseUsage } from '../../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts';

let runtime: Runtime;
let client: OpenAI;
const baseURL = 'http://in-process/v1';
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 512 });
  client = new OpenAI({ fetch: runtime.fetch, baseURL, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => runtime.close());

const model = 'onpolicy-tiny';
const CAPITAL = { model, input: 'What is the capital of Peru?', temperature: 0 };
const LIMA = 'The capital of Peru is Lima.';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const WEATHER = {
  type: 'function' as const,
  name: 'get_weather',
  description: 'The weather of a city',
  parameters,
  strict: false,
};
const ASK_WEATHER = {
  ...CAPITAL,
  input: 'What is the weather in Paris?',
  tools: [WEATHER],
  max_output_tokens: 40,
};

it("has answers of the client's own types", () => {
  const response = {} as ResponseObject;
  const event = {} as ResponseStreamEvent;
  const usage = {} as ResponseUsage;
  response satisfies OpenAI.Responses.Response;
  event satisfies OpenAI.Responses.ResponseStreamEvent;
  usage satisfies OpenAI.Responses.ResponseUsage;
  expect(response).toEqual(event);
});

describe("OpenAI's client", () => {
  it('gets a response', async () => {
    const response = await client.responses.create({ ...CAPITAL, metadata: { a: 'b' } });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model,
      output_text: LIMA,
      metadata: { a: 'b' },
      usage: { output_tokens: 10 },
    });
    expect(response.output).toMatchObject([
      {
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: LIMA }],
      },
    ]);
  });

  it('gets calls, or a text that fits its format', async () => {
    const person = {
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'integer' } },
      required: ['name', 'age'],
      additionalProperties: false,
    };
    const text = { format: { type: 'json_schema' as const, name: 'person', schema: person } };
    const called = await client.responses.create({ ...ASK_WEATHER, text });
    expect(called.output).toMatchObject([{ type: 'function_call', name: 'get_weather' }]);
    const input = 'Extract the name and age as JSON: Omar is 26 years old and lives in Delhi.';
    const extracted = await client.responses.create({ ...ASK_WEATHER, input, text });
    expect(JSON.parse(extracted.output_text)).toEqual({ name: 'Omar', age: 26 });
    const forced = await client.responses.create({ ...ASK_WEATHER, input, text, tool_choice: 'required' });
    expect(forced.output.map(({ type }) => type)).toEqual(['function_call']);
  });

  it('gets the events of a stream in their order, numbered', async () => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ ...CAPITAL, stream: true })) events.push(event);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i));
    expect(events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1])).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const last = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent;
    expect(last.response).toMatchObject({ output_text: LIMA, usage: { output_tokens: 10 } });
    expect(await client.responses.retrieve(last.response.id)).toEqual(
      expect.objectContaining({ output_text: LIMA }),
    );
    const whole = await client.responses.stream(CAPITAL).finalResponse();
    expect(whole.output_text).toBe(LIMA);
  });

  it('calls functions, whole and streamed, and goes on with their results', async () => {
    const whole = await client.responses.create(ASK_WEATHER);
    const streamed = await client.responses.stream(ASK_WEATHER).finalResponse();
    for (const { output } of [whole, streamed])
      expect(output.at(-1)).toMatchObject({
        type: 'function_call',
        name: 'get_weather',
        status: 'completed',
      });
    const call = whole.output.at(-1) as OpenAI.Responses.ResponseFunctionToolCall;
    expect(JSON.parse(call.arguments)).toEqual({ city: 'Paris' });
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'sunny' };
    const stored = await client.responses.create({
      ...ASK_WEATHER,
      input: [result],
      previous_response_id: whole.id,
    });
    const input = [{ role: 'user' as const, content: ASK_WEATHER.input }, call, result];
    const given = await client.responses.create({ ...ASK_WEATHER, input });
    expect(stored.output_text).toBe(given.output_text);
    expect(stored.usage!.input_tokens).toBe(given.usage!.input_tokens);
  });

  it('calls custom tools, whole and streamed, and goes on with their results', async () => {
    const format = { type: 'grammar' as const, syntax: 'regex' as const, definition: 'SELECT [a-z]{1,4}' };
    const asked = {
      ...CAPITAL,
      tools: [WEATHER, { type: 'custom' as const, name: 'query', description: 'Asks a database', format }],
      tool_choice: { type: 'custom' as const, name: 'query' },
      max_output_tokens: 60,
    };
    const whole = await client.responses.create(asked);
    const call = whole.output.at(-1) as OpenAI.Responses.ResponseCustomToolCall;
    expect(call).toMatchObject({ type: 'custom_tool_call', name: 'query', status: 'completed' });
    expect(call.input).toMatch(/^SELECT [a-z]{1,4}$/);
    expect(whole.tools).toEqual([WEATHER, asked.tools[1]]);
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ ...asked, stream: true })) events.push(event);
    const deltas = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    expect(deltas.map((event) => 'delta' in event && event.delta).join('')).toBe(call.input);
    expect(events.find(({ type }) => type === 'response.custom_tool_call_input.done')).toMatchObject({
      input: call.input,
    });
    const result = { type: 'custom_tool_call_output' as const, call_id: call.call_id, output: 'Lima' };
    const input = [{ role: 'user' as const, content: CAPITAL.input }, call, result];
    const more = { ...asked, tool_choice: 'none' as const, max_output_tokens: 8 };
    const given = await client.responses.create({ ...more, input });
    const stored = await client.responses.create({
      ...more,
      input: [result],
      previous_response_id: whole.id,
    });
    expect(stored.usage!.input_tokens).toBe(given.usage!.input_tokens);
    const faulty = { ...asked, tools: [{ ...asked.tools[1], format: { ...format, definition: '(' } }] };
    await expect(client.responses.create(faulty as never)).rejects.toMatchObject({
      status: 400,
      param: 'tools.0.format.definition',
    });
  });

  it('gets an answer that follows a schema', async () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer' } },
      required: ['age'],
      additionalProperties: false,
    };
    const { output_text } = await client.responses.create({
      ...CAPITAL,
      text: { format: { type: 'json_schema', name: 'x', schema } },
    });
    expect(JSON.parse(output_text)).toEqual({ age: expect.any(Number) as number });
  });

  it('finds, lists and deletes what is stored', async () => {
    const { id } = await client.responses.create(CAPITAL);
    expect((await client.responses.retrieve(id)).id).toBe(id);
    expect((await client.responses.inputItems.list(id)).data).toMatchObject([
      { role: 'user', content: [{ type: 'input_text', text: CAPITAL.input }] },
    ]);
    await client.responses.delete(id);
    for (const gone of [
      client.responses.retrieve(id),
      client.responses.create({ ...CAPITAL, previous_response_id: id }),
    ])
      await expect(gone).rejects.toBeInstanceOf(NotFoundError);
    const hidden = await client.responses.create({ ...CAPITAL, store: false });
    await expect(runtime.responses.retrieve(hidden.id)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      param: 'id',
    });
  });

  it('is told when an answer is cut, and drops old messages where it may', async () => {
    const cut = await client.responses.create({ ...CAPITAL, max_output_tokens: 3 });
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    const input = Array.from({ length: 60 }, (_, i) => ({
      role: i % 2 ? ('assistant' as const) : ('user' as const),
      content: `This is message number ${i} of a long chat.`,
    }));
    const long = {
      ...CAPITAL,
      instructions: 'Be short.',
      input: [...input, { role: 'user' as const, content: CAPITAL.input }],
      max_output_tokens: 20,
    };
    await expect(client.responses.create(long)).rejects.toMatchObject({
      param: 'input',
      code: 'context_length_exceeded',
    });
    expect((await client.responses.create({ ...long, truncation: 'auto' })).output).toHaveLength(1);
  });

  it('counts and compacts a conversation', async () => {
    const { id, usage } = await client.responses.create(CAPITAL);
    const { input_tokens } = await client.responses.inputTokens.count({ model, input: CAPITAL.input });
    expect(input_tokens).toBe(usage!.input_tokens);
    const asked = { model, previous_response_id: id, temperature: 0 };
    const { output, usage: used } = await client.responses.compact(asked);
    expect(output.map(({ type }) => type)).toEqual(['message', 'compaction']);
    expect(used.output_tokens).toBeGreaterThan(0);
    const input = [
      ...(output as OpenAI.Responses.ResponseInput),
      { role: 'user' as const, content: 'Go on.' },
    ];
    const next = await client.responses.create({ ...CAPITAL, input, max_output_tokens: 4 });
    expect(next.usage!.input_tokens).toBeGreaterThan(usage!.input_tokens);
  });

  it('gets log-probabilities where it asks for them', async () => {
    const { output } = await client.responses.create({
      ...CAPITAL,
      top_logprobs: 2,
      include: ['message.output_text.logprobs'],
    });
    const [part] = (output[0] as OpenAI.Responses.ResponseOutputMessage).content;
    expect((part as OpenAI.Responses.ResponseOutputText).logprobs![0]!.top_logprobs).toHaveLength(2);
  });

  it('ends what it leaves', async () => {
    const endless = { ...CAPITAL, ignore_eos: true, stream: true as const };
    for await (const event of await client.responses.create(endless))
      if (event.type === 'response.output_text.delta') break;
    await expect.poll(() => runtime.stats().running, { interval: 5 }).toBe(0);
  });

  it.each<[string, object, string]>([
    ['a field', { ...CAPITAL, max_output_tokens: 0 }, 'max_output_tokens'],
    ['an item', { ...CAPITAL, input: [{ type: 'computer_call' }] }, 'input.0.type'],
    [
      'a rule of chats',
      { ...CAPITAL, tools: [WEATHER], tool_choice: { type: 'function', name: 'x' } },
      'tool_choice.name',
    ],
    [
      'a picture',
      { ...CAPITAL, input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,' }] }] },
      'input.0.content.0',
    ],
    ['what is not served', { ...CAPITAL, background: true }, 'background'],
  ])('is told the path of %s', async (_, request, param) => {
    const error = await client.responses.create(request as never).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(BadRequestError);
    expect((error as BadRequestError).param).toBe(param);
  });
});

const execute =
  (asked: string[]) =>
  async ({ city }: { city: string }) => {
    asked.push(city);
    return 'sunny';
  };

describe("Vercel's provider", () => {
  const provider = () => createOpenAI({ fetch: runtime.fetch, baseURL, apiKey: 'any' }).responses(model);
  const PROMPT = { prompt: CAPITAL.input, temperature: 0, maxRetries: 0 };

  it('generates and streams text', async () => {
    const { text, finishReason, usage } = await generateText({ model: provider(), ...PROMPT });
    expect([text, finishReason, usage.outputTokens]).toEqual([LIMA, 'stop', 10]);
    let streamed = '';
    for await (const part of streamText({ model: provider(), ...PROMPT }).textStream) streamed += part;
    expect(streamed).toBe(LIMA);
  });

  it('goes on with references to what was answered', async () => {
    const sent: string[] = [];
    const fetch: typeof globalThis.fetch = (url, init) => {
      sent.push(String(init?.body));
      return runtime.fetch(url, init);
    };
    const own = createOpenAI({ fetch, baseURL, apiKey: 'any' })(model); // its default API
    const messages: ModelMessage[] = [{ role: 'user', content: CAPITAL.input }];
    const { response } = await generateText({ model: own, messages, temperature: 0, maxRetries: 0 });
    messages.push(...response.messages, { role: 'user', content: 'What is the capital of Egypt?' });
    const { text } = await generateText({ model: own, messages, temperature: 0, maxRetries: 0 });
    expect(sent[1]).toContain('"item_reference"');
    expect(text).toContain('Cairo');
  });

  it('runs tools, whole and streamed', async () => {
    const asked: string[] = [];
    const inputSchema = z.object({ city: z.string() });
    const tools = {
      get_weather: tool({ description: WEATHER.description, inputSchema, execute: execute(asked) }),
    };
    const options = {
      model: provider(),
      prompt: ASK_WEATHER.input,
      temperature: 0,
      maxRetries: 0,
      maxOutputTokens: 40,
      tools,
    };
    const { steps } = await generateText({ ...options, stopWhen: stepCountIs(2) });
    expect([steps[0]!.finishReason, steps.length, asked]).toEqual(['tool-calls', 2, ['Paris']]);
    expect(await streamText(options).toolCalls).toMatchObject([
      { toolName: 'get_weather', input: { city: 'Paris' } },
    ]);
  });

  it('generates an object', async () => {
    const schema = z.object({ city: z.enum(['Delhi', 'Lima']) });
    const { object } = await generateObject({ model: provider(), schema, ...PROMPT });
    expect(['Delhi', 'Lima']).toContain(object.city);
  });
});

it.each([false, true])("OpenAI's agents run a loop of tools, stream: %s", async (stream) => {
  const asked: string[] = [];
  const weather = agentTool({
    name: 'get_weather',
    description: WEATHER.description,
    parameters: z.object({ city: z.string() }),
    execute: execute(asked),
  });
  const agent = new Agent({
    name: 'a',
    model,
    tools: [weather],
    modelSettings: { temperature: 0, maxTokens: 40 },
  });
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ openAIClient: client as never, useResponses: true }),
    tracingDisabled: true,
  });
  if (stream) {
    const result = await runner.run(agent, ASK_WEATHER.input, { stream: true, maxTurns: 4 });
    await result.completed;
    expect(result.finalOutput).toBeTypeOf('string');
  } else {
    const { finalOutput } = await runner.run(agent, ASK_WEATHER.input, { maxTurns: 4 });
    expect(finalOutput).toBeTypeOf('string');
  }
  expect(asked[0]).toBe('Paris');
});
