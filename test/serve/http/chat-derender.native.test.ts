/** `/v1/chat/completions/derender`: rendered, generated and read back, a request has the answer that it has directly. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  ChatCompletion,
  ChatCompletionRequest,
  ParseAnswerRequest,
} from '../../../src/protocol/index.ts';
import { schema } from '../../../src/protocol/index.ts';
import type { Completions } from '../../../src/protocol/service/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { registerLogitsProcessor } from '../../../src/sampling/index.ts';
import { connect, createHandler, createPool, type Handler } from '../../../src/serve/http/index.ts';
import { onlyThese, PLAIN, specialId } from '../../answer/fields/model.ts';
import { samplingParams } from '../../contract/sampling-params.ts';
import { ask } from './exchange.ts';

let runtime: Runtime;
let handler: Handler;
let services: Readonly<Record<string, Completions>>;
let end: number;
beforeAll(async () => {
  registerLogitsProcessor('only these', ({ args: [ids, last] }) =>
    onlyThese(ids as number[], last as number),
  );
  runtime = await createRuntime({ threads: 1, contextSize: 512, prefixCache: false, speculation: false });
  handler = createHandler(runtime, { maxChoices: 4, maxMessages: 3, maxLogprobs: null });
  const client = connect({ baseUrl: 'http://localhost', fetch: (...args) => handler(new Request(...args)) });
  services = { 'in process': runtime, 'a client': client, 'a pool': createPool([client]) };
  end = await specialId(runtime, '<|im_end|>');
});
afterAll(() => runtime.close());

// biome-ignore lint/suspicious/noExplicitAny: answers as their clients read them
type Json = any;
const post = async (path: string, body: unknown): Promise<Json> =>
  (await ask(handler, 'POST', path, { body })).body;
const DERENDER = '/v1/chat/completions/derender';

/** Returns an answer without what is drawn. */
function stable({ id: _, created: __, ...answer }: ChatCompletion): unknown {
  const choices = answer.choices.map(({ message, ...choice }) => ({
    ...choice,
    message: { ...message, tool_calls: message.tool_calls.map(({ id: _i, ...call }) => call) },
  }));
  return { ...answer, choices };
}

/** Renders and generates. Returns the request that reads the tokens back. */
async function throughTokens(chat_request: ChatCompletionRequest): Promise<Json> {
  const { prompt_token_ids: token_ids } = await post('/v1/chat/completions/render', chat_request);
  const sampling_params = samplingParams(chat_request);
  const generate_response = await post('/inference/v1/generate', { token_ids, sampling_params });
  return { generate_response, prompt_tokens: token_ids.length, chat_request } satisfies ParseAnswerRequest;
}

const messages = [{ role: 'user' as const, content: 'What is the capital of Peru?' }];
const tool = (name: string) => ({
  type: 'function' as const,
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
});
const tools = [tool('weather'), tool('time')];
const HERMES = `${PLAIN}{% if tools %}<tool_call>{"name": "x", "arguments": {}}</tool_call>{% endif %}`;
const THINKS = `${HERMES}{% if false %}<think></think>{% endif %}`;
const CALLS = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>';
const functions = tools.map((one) => one.function);

/** Requests: the text that the model is made to say, or null; the fields of the chat. */
const ROWS: readonly (readonly [
  name: string,
  says: string | null,
  fields: Partial<ChatCompletionRequest>,
])[] = [
  ['an answer', null, { temperature: 0 }],
  ['a limit', null, { temperature: 0, max_tokens: 3 }],
  ['choices of a seed', null, { temperature: 1, seed: 5, n: 3, max_tokens: 12 }],
  ['a stop string', null, { temperature: 0, stop: ['Li'] }],
  ['a stop string that is shown', null, { temperature: 0, stop: ['Li'], include_stop_str_in_output: true }],
  ['log-probabilities', null, { temperature: 0, logprobs: true, top_logprobs: 3 }],
  [
    'log-probabilities of given tokens as ids',
    null,
    { temperature: 0, logprobs: true, logprob_token_ids: [5, 3], return_tokens_as_token_ids: true },
  ],
  ['tokens and the prompt', null, { temperature: 0, return_token_ids: true, return_prompt_text: true }],
  ['scores of the prompt', null, { temperature: 0, prompt_logprobs: 1, max_tokens: 2 }],
  ['a schema', null, { temperature: 0, response_format: { type: 'json_object' }, max_tokens: 30 }],
  [
    'a continued message',
    null,
    {
      messages: [...messages, { role: 'assistant', content: 'The capital' }],
      ...{ temperature: 0, continue_final_message: true, echo: true },
    },
  ],
  ['a repetition', 'no no no no no no', { repetition_detection: { max_pattern_size: 4, min_count: 3 } }],
  ['a call', `Well. ${CALLS}`, { tools, chat_template: HERMES }],
  ['a call that is cut', CALLS, { tools, chat_template: HERMES, max_tokens: 30 }],
  ['the first of two calls', CALLS + CALLS, { tools, chat_template: HERMES, parallel_tool_calls: false }],
  ['a function call', CALLS, { functions, chat_template: HERMES }],
  ['no calls wanted', CALLS, { tools, tool_choice: 'none', chat_template: HERMES }],
  ['reasoning and a call', `<think>rome?</think>${CALLS}`, { tools, chat_template: THINKS }],
  ['reasoning that is left out', '<think>a</think>b', { chat_template: THINKS, include_reasoning: false }],
  ['open reasoning', 'hm</think>yes', { chat_template: `${PLAIN}<think>` }],
];

describe('reads what was generated', () => {
  it.each(ROWS)('%s', async (_, says, fields) => {
    const forced = says
      ? {
          temperature: 0,
          logits_processors: [
            { qualname: 'only these', args: [await runtime.tokenize(says, { parseSpecial: true }), end] },
          ],
        }
      : {};
    const request = { messages, ...forced, ...fields };
    const direct = await runtime.createCompletion({ ...request, stream: false });
    const asked = await throughTokens(request);
    const expected = JSON.parse(JSON.stringify(stable({ ...direct, seed: null })));
    expect(stable(await post(DERENDER, asked))).toEqual(expected);
    for (const service of Object.values(services))
      expect(stable(await service.parseAnswer!(asked))).toEqual(expected);
  });
});

describe('tokens', () => {
  const one = (token_ids: readonly number[], more = {}) => ({ choices: [{ token_ids, ...more }] });

  it('without a request are content, with the counts that come with them', async () => {
    const ids = await runtime.tokenize(`<think>a</think>${CALLS}`, { parseSpecial: true });
    const usage = { prompt_tokens: 7, prompt_tokens_details: { cached_tokens: 2 } };
    const generate_response = { ...one([...ids, end]), request_id: 'mine', created: 5, usage };
    const { model } = await runtime.createCompletion({ messages, max_tokens: 1, stream: false });
    const answer = await post(DERENDER, { generate_response });
    expect(answer).toMatchObject({
      ...{ id: 'chatcmpl-mine', created: 5, object: 'chat.completion', model },
      choices: [{ message: { content: `<think>a</think>${CALLS}`, tool_calls: [] }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7, completion_tokens: ids.length + 1, total_tokens: ids.length + 8 },
    });
    expect(answer.usage.prompt_tokens_details).toEqual({ cached_tokens: 2 });
    expect((await post(DERENDER, { generate_response, prompt_tokens: 3 })).usage.prompt_tokens).toBe(3);
  });

  it('end where they ended elsewhere, unless the request ends them before', async () => {
    const ids = await runtime.tokenize('one two three');
    const given = one(ids, { finish_reason: 'length' });
    const chat_request = { messages };
    const whole = await runtime.parseAnswer({ generate_response: given, chat_request });
    expect(whole.choices[0]).toMatchObject({
      message: { content: 'one two three' },
      finish_reason: 'length',
    });
    const cut = await runtime.parseAnswer({
      generate_response: given,
      chat_request: { ...chat_request, stop: ' three', return_token_ids: true },
    });
    expect(cut.choices[0]).toMatchObject({
      message: { content: 'one two' },
      ...{ finish_reason: 'stop', stop_reason: ' three' },
    });
    expect(cut.usage.completion_tokens).toBe(cut.choices[0]!.token_ids!.length);
    const reason = one(ids, { finish_reason: 'stop', stop_reason: 'elsewhere' });
    const ended = await runtime.parseAnswer({ generate_response: reason, chat_request });
    expect(ended.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: 'elsewhere' });
    const none = await runtime.parseAnswer({ generate_response: one([]), chat_request });
    expect(none.choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'stop' });
    expect(none.usage.prompt_tokens).toBe((await runtime.renderPrompt(chat_request)).count);
  });

  it('of a request with a schema are read by it', async () => {
    const generate_response = one(await runtime.tokenize('{"city": "Lima"}'));
    const response_format = schema<{ city: string }>({ type: 'object' });
    for (const service of Object.values(services)) {
      const answer = await service.parseAnswer!({
        generate_response,
        chat_request: { messages, response_format },
      });
      expect((answer as { parsed?: unknown }).parsed).toEqual({ city: 'Lima' });
    }
  });

  it('may come with values that JSON lacks', async () => {
    const generate_response = one(await runtime.tokenize('Lima.'));
    const chat_request = { messages, seed: 2n ** 62n };
    for (const service of Object.values(services))
      expect(
        (await service.parseAnswer!({ generate_response, chat_request })).choices[0]!.message.content,
      ).toBe('Lima.');
  });
});

describe('refuses', () => {
  const scores = (...ids: readonly number[]) => ({
    content: ids.map((token_id) => ({ token_id, logprob: -1 })),
  });
  const choice = (token_ids: unknown, logprobs: unknown = null) => ({ choices: [{ token_ids, logprobs }] });
  it.each<[name: string, body: unknown, path: string, code?: string]>([
    ['no answer', {}, 'generate_response'],
    ['an answer that is none', { generate_response: 5 }, 'generate_response'],
    ['ids that are none', { generate_response: choice(['a']) }, 'generate_response.choices.0.token_ids.0'],
    ['unknown ids', { generate_response: choice([1, 1e9]) }, 'generate_response.choices.0.token_ids.1'],
    [
      'too few log-probabilities',
      { generate_response: choice([1, 2], scores(1)) },
      'generate_response.choices.0.logprobs.content',
    ],
    [
      'those of other tokens',
      { generate_response: choice([1, 2], scores(1, 3)) },
      'generate_response.choices.0.logprobs.content.1.token_id',
    ],
    ['a count below 0', { generate_response: choice([1]), prompt_tokens: -1 }, 'prompt_tokens'],
    ['a request that is none', { generate_response: choice([1]), chat_request: 'x' }, 'chat_request'],
    [
      'a faulty field of the request',
      { generate_response: choice([1]), chat_request: { messages, temperature: -1 } },
      'chat_request.temperature',
    ],
    [
      'a misspelt field of the request',
      { generate_response: choice([1]), chat_request: { messages, temprature: 1 } },
      'chat_request.temprature',
    ],
    [
      'a request without messages',
      { generate_response: choice([1]), chat_request: {} },
      'chat_request.messages',
    ],
    [
      'fields that contradict each other',
      { generate_response: choice([1]), chat_request: { messages, top_logprobs: 2 } },
      'chat_request.top_logprobs',
    ],
    [
      'ids of the request that the vocabulary lacks',
      { generate_response: choice([1]), chat_request: { messages, stop_token_ids: [1e9] } },
      'chat_request.stop_token_ids.0',
    ],
    [
      'a prompt that is too long',
      { generate_response: choice([1]), chat_request: { messages, max_tokens: 999 } },
      'chat_request.max_completion_tokens',
      'CONTEXT_OVERFLOW',
    ],
    [
      'a schema that is none',
      {
        generate_response: choice([1]),
        chat_request: { messages, structured_outputs: { json: { type: 'x' } } },
      },
      'chat_request.structured_outputs.json',
    ],
    [
      'an unknown model of the request',
      { generate_response: choice([1]), chat_request: { messages, model: 'none' } },
      'chat_request.model',
      'MODEL_NOT_FOUND',
    ],
    ['an unknown model', { generate_response: choice([1]), model: 'none' }, 'model', 'MODEL_NOT_FOUND'],
  ])('%s', async (_, body, path, code = 'INVALID_REQUEST') => {
    const { body: answer, headers } = await ask(handler, 'POST', DERENDER, { body });
    const { error } = answer as Json;
    expect([headers.get('x-error-code'), error.param]).toEqual([code, expect.stringContaining(path)]);
    if (code === 'INVALID_REQUEST')
      expect(error.message).toMatch(new RegExp(`^${path.replaceAll('.', '\\.')}`));
    await expect(runtime.parseAnswer(body as ParseAnswerRequest)).rejects.toMatchObject({ code });
  });

  it('more than the limits of the server', async () => {
    const many = { choices: Array.from({ length: 5 }, () => ({ token_ids: [1] })) };
    for (const [body, message] of [
      [{ generate_response: many }, 'generate_response.choices: expected at most 4, got 5'],
      [
        { generate_response: choice([1]), chat_request: { messages: Array(4).fill(messages[0]) } },
        'chat_request.messages: expected at most 3, got 4',
      ],
    ] as const)
      expect(await ask(handler, 'POST', DERENDER, { body })).toMatchObject({
        status: 413,
        body: { error: { message } },
      });
  });

  it('tokens of clients without the scope, and lists fields that it ignores', async () => {
    const tokens = [
      { token: 'reader', scopes: ['read'] as const },
      { token: 'user', scopes: ['complete'] as const },
    ];
    const guarded = createHandler(runtime, { tokens });
    const body = { generate_response: choice([1]), odd: 1, chat_request: { messages, another: 2 } };
    const asked = (token: string) =>
      ask(guarded, 'POST', DERENDER, { body, headers: { authorization: `Bearer ${token}` } });
    expect((await asked('reader')).status).toBe(403);
    const { status, headers } = await asked('user');
    expect([status, headers.get('x-ignored-fields')]).toEqual([200, 'odd, chat_request.another']);
  });

  it('where the service has no such method', async () => {
    const { createCompletion, close } = runtime;
    const bare = { createCompletion: createCompletion.bind(runtime), close, [Symbol.asyncDispose]: close };
    const { body } = await ask(createHandler(bare), 'POST', DERENDER, {
      body: { generate_response: choice([1]) },
    });
    expect(body).toMatchObject({ error: { code: 'UNSUPPORTED' } });
  });
});

it("a client's tokens are not charged for: they were spent elsewhere", async () => {
  const limited = createHandler(runtime, {
    tokens: [{ token: 'user', scopes: ['complete'], tokensPerMinute: 20 }],
  });
  const body = { generate_response: { choices: [{ token_ids: Array(15).fill(5) }] }, prompt_tokens: 1000 };
  for (let i = 0; i < 3; i++)
    expect(
      (await ask(limited, 'POST', DERENDER, { body, headers: { authorization: 'Bearer user' } })).status,
    ).toBe(200);
});
