/** Contract of every service about completions, regardless of the layers between it and the embedded model. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import type { CallOptions, Completions } from '../../src/protocol/service/index.ts';
import { functionsOf } from '../fakes/calls.ts';

const CAPITAL: ChatCompletionRequest = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
};
const STORY: ChatCompletionRequest = { messages: [{ role: 'user', content: 'Tell me a story.' }], seed: 3 };
/** Runs until it is stopped. */
const ENDLESS: ChatCompletionRequest = { ...STORY, ignore_eos: true };
const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
} as const;

/** Requests whose answer is the same each time. */
const ANSWERED: Readonly<Record<string, ChatCompletionRequest>> = {
  'a question': CAPITAL,
  'several choices of a seed': { ...STORY, n: 3, temperature: 0.8 },
  'log-probabilities and ids': { ...CAPITAL, logprobs: true, top_logprobs: 3, return_token_ids: true },
  'prompt log-probabilities': { ...CAPITAL, prompt_logprobs: 1 },
  'a tool call': {
    messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
    temperature: 0,
    tools: [WEATHER],
  },
  'a JSON Schema': {
    messages: [{ role: 'user', content: 'Omar is 26.' }],
    temperature: 0,
    max_completion_tokens: 60,
    structured_outputs: { json: { type: 'object', properties: { age: { type: 'integer' } } } },
  },
  'a stop string and a limit': { ...STORY, stop: ['.'], max_completion_tokens: 40 },
  'a large seed': { ...STORY, seed: 2 ** 53 - 1, max_completion_tokens: 8 },
  echo: {
    messages: [...CAPITAL.messages, { role: 'assistant', content: 'The capital' }],
    temperature: 0,
    continue_final_message: true,
    echo: true,
  },
};

const FAULTY: Readonly<Record<string, readonly [request: unknown, error: object]>> = {
  'an unknown field': [
    { ...CAPITAL, temprature: 1 },
    {
      code: 'INVALID_REQUEST',
      message: 'temprature: not a field of a request; did you mean temperature?',
      param: 'temprature',
    },
  ],
  'several faults': [
    { messages: 'Hi', n: 0, top_p: '1' },
    {
      code: 'INVALID_REQUEST',
      detail: [{ loc: ['messages'] }, { loc: ['top_p'] }, { loc: ['n'] }],
    },
  ],
  'nothing at all': [null, { code: 'INVALID_REQUEST' }],
  'fields that contradict each other': [
    { ...CAPITAL, add_generation_prompt: true, continue_final_message: true },
    { code: 'INVALID_REQUEST' },
  ],
  'an unknown model': [
    { ...CAPITAL, model: 'none' },
    { code: 'MODEL_NOT_FOUND', status: 404 },
  ],
  'a priority without its scheduling': [
    { ...CAPITAL, priority: 1 },
    { code: 'INVALID_REQUEST', param: 'priority' },
  ],
  'a token id beyond the vocabulary': [
    { ...CAPITAL, stop_token_ids: [10_000_000] },
    { code: 'INVALID_REQUEST', param: 'stop_token_ids.0' },
  ],
  'more than fits': [
    { messages: [{ role: 'user', content: 'many words '.repeat(4000) }] },
    { code: 'CONTEXT_OVERFLOW', status: 400 },
  ],
  'a template that fails': [
    { ...CAPITAL, chat_template: '{{ raise_exception("no") }}' },
    { code: 'TEMPLATE_FAILED' },
  ],
};

/** Returns the part of an answer that is always the same: without ids, times, drawn seeds and cached tokens. */
function stable(answer: ChatCompletion): unknown {
  const { id, created, seed, usage, choices, ...rest } = answer;
  return {
    ...rest,
    choices: choices.map(({ message, ...choice }) => ({
      ...choice,
      message: { ...message, tool_calls: functionsOf(message.tool_calls) },
    })),
    usage: { ...usage, prompt_tokens_details: undefined },
  };
}

/** The same, but log-probabilities may be off by 0.05: the cache and the batch decide their last digits. */
function nearly(value: unknown, key = ''): unknown {
  if (key === 'logprob' && typeof value === 'number') return expect.closeTo(value, 1);
  if (Array.isArray(value)) return value.map((one) => nearly(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, nearly(one, name)]));
}

async function errorOf(call: Promise<unknown>): Promise<OnpolicyError> {
  const error: unknown = await call.then(
    () => new Error('it did not reject'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof OnpolicyError) return error;
  throw error;
}

async function read(stream: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const contentOf = (chunks: readonly ChatCompletionChunk[], index = 0): string =>
  chunks
    .flatMap(({ choices }) => choices)
    .filter((choice) => choice.index === index)
    .map(({ delta }) => delta.content ?? '')
    .join('');

/** Opened for the contract: the service, the runtime behind it, and what its engine still does. */
export type Opened = {
  readonly service: Completions;
  /** Sequences that the engines behind it run or hold back. */
  readonly busy: () => number;
  readonly close: () => Promise<void>;
};

/** Runs the contract. `reference` answers in process. */
export function completionContract(
  name: string,
  open: () => Promise<Opened>,
  reference: (request: ChatCompletionRequest) => Promise<ChatCompletion>,
): void {
  describe(`${name} obeys the contract of completions`, () => {
    let opened: Opened;
    let service: Completions;
    beforeAll(async () => {
      opened = await open();
      service = opened.service;
    });
    afterAll(() => opened.close());

    const whole = (request: ChatCompletionRequest, options?: CallOptions): Promise<ChatCompletion> =>
      service.createCompletion({ ...request, stream: false }, options);

    it.each(Object.keys(ANSWERED))('answers as in process: %s', async (key) => {
      const request = ANSWERED[key]!;
      expect(stable(await whole(request))).toEqual(nearly(stable(await reference(request))));
    });

    it('streams what it answers', async () => {
      const request = { ...STORY, n: 2, temperature: 0.7, max_completion_tokens: 30 };
      const { choices, usage } = await whole(request);
      const chunks = await read(
        await service.createCompletion({ ...request, stream: true, stream_options: { include_usage: true } }),
      );
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
      for (const { index, message, finish_reason } of choices) {
        expect(contentOf(chunks, index)).toBe(message.content);
        const ends = chunks
          .flatMap((chunk) => chunk.choices)
          .filter((choice) => choice.finish_reason !== null);
        expect(ends.find((choice) => choice.index === index)).toMatchObject({ finish_reason });
      }
      expect(chunks.at(-1)!.choices).toEqual([]);
      expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens: usage.completion_tokens });
    });

    it('takes the id of the request', async () => {
      const request_id = 'my-id';
      expect((await whole({ ...CAPITAL, request_id })).id).toBe('chatcmpl-my-id');
    });

    it.each(Object.keys(FAULTY))('refuses %s', async (key) => {
      const [request, expected] = FAULTY[key]!;
      expect(await errorOf(service.createCompletion(request as ChatCompletionRequest))).toMatchObject(
        expected,
      );
      if (request === null) return;
      const streamed = { ...(request as ChatCompletionRequest), stream: true } as const;
      expect(await errorOf(service.createCompletion(streamed))).toMatchObject(expected);
    });

    const isIdle = async (): Promise<void> => {
      await expect.poll(opened.busy, { timeout: 5000, interval: 5 }).toBe(0);
    };

    it('does not begin when the signal has fired', async () => {
      const error = await errorOf(whole(ENDLESS, { signal: AbortSignal.abort() }));
      expect(error).toMatchObject({ code: 'ABORTED', status: 499 });
    });

    it('ends an answer when the signal fires', async () => {
      const controller = new AbortController();
      const end = errorOf(whole({ ...ENDLESS, n: 4 }, { signal: controller.signal }));
      await expect.poll(opened.busy, { interval: 2 }).toBeGreaterThan(0);
      controller.abort();
      expect(await end).toMatchObject({ code: 'ABORTED' });
      await isIdle();
    });

    it('ends a stream when the signal fires', async () => {
      const controller = new AbortController();
      const stream = await service.createCompletion(
        { ...ENDLESS, stream: true },
        { signal: controller.signal },
      );
      const end = errorOf(
        (async () => {
          for await (const { choices } of stream) if (choices[0]?.delta.content) controller.abort();
        })(),
      );
      expect(await end).toMatchObject({ code: 'ABORTED' });
      await isIdle();
    });

    it('ends a stream that is aborted, also one that nobody reads', async () => {
      const stream = await service.createCompletion({ ...ENDLESS, stream: true });
      const iterator = stream[Symbol.asyncIterator]();
      await iterator.next();
      stream.abort();
      const rest = (async () => {
        while (!(await iterator.next()).done);
      })();
      expect(await errorOf(rest)).toMatchObject({ code: 'ABORTED' });
      (await service.createCompletion({ ...ENDLESS, stream: true })).abort();
      await isIdle();
    });

    it('ends a request whose stream is left', async () => {
      for await (const { choices } of await service.createCompletion({ ...ENDLESS, stream: true }))
        if (choices[0]?.delta.content) break;
      await isIdle();
    });

    it('answers many at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 24 }, async (_, i) =>
          i % 2 === 0
            ? (await whole(CAPITAL)).choices[0]!.message.content
            : contentOf(await read(await service.createCompletion({ ...CAPITAL, stream: true }))),
        ),
      );
      expect(new Set(answers)).toEqual(new Set(['The capital of Peru is Lima.']));
    });

    it('answers nothing once it is closed', async () => {
      const running = errorOf(whole(ENDLESS));
      await expect.poll(opened.busy, { interval: 2 }).toBeGreaterThan(0);
      await service.close();
      await service.close();
      expect(await running).toMatchObject({ code: 'CLOSED' });
      expect(await errorOf(whole(CAPITAL))).toMatchObject({ code: 'CLOSED' });
    });
  });
}
