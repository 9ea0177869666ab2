/** OpenAI's client on `runtime.fetch`, with no port: answers, streams, aborts and errors are those of a server. */
import OpenAI, { APIUserAbortError, BadRequestError } from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createFetch } from '../../../src/serve/http/index.ts';

let runtime: Runtime;
let client: OpenAI;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
  client = new OpenAI({
    fetch: runtime.fetch,
    baseURL: 'http://in-process/v1',
    apiKey: 'any',
    maxRetries: 0,
  });
});
afterAll(() => runtime.close());

const CAPITAL = {
  model: 'onpolicy-tiny',
  messages: [{ role: 'user' as const, content: 'What is the capital of Peru?' }],
  temperature: 0,
};
const STORY = {
  ...CAPITAL,
  messages: [{ role: 'user' as const, content: 'Tell me a story.' }],
  ignore_eos: true,
};
const isIdle = () => expect.poll(() => runtime.stats().running, { interval: 5 }).toBe(0);

it('answers', async () => {
  const { choices } = await client.chat.completions.create(CAPITAL);
  expect(choices[0]!.message.content).toBe('The capital of Peru is Lima.');
});

it('streams', async () => {
  let text = '';
  for await (const { choices } of await client.chat.completions.create({ ...CAPITAL, stream: true }))
    text += choices[0]?.delta.content ?? '';
  expect(text).toBe('The capital of Peru is Lima.');
});

it('ends what a client aborts, whole or streamed', async () => {
  const before = new AbortController();
  const whole = client.chat.completions.create(STORY, { signal: before.signal });
  await expect.poll(() => runtime.stats().running, { interval: 2 }).toBe(1);
  before.abort();
  await expect(whole).rejects.toBeInstanceOf(APIUserAbortError);
  await isIdle();
  const during = new AbortController();
  const stream = await client.chat.completions.create({ ...STORY, stream: true }, { signal: during.signal });
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 3) during.abort(); // the client ends its loop without an error
  expect(chunks).toBeLessThan(100);
  await isIdle();
  for await (const _ of await client.chat.completions.create({ ...STORY, stream: true })) break;
  await isIdle();
});

it('has the errors of a server, and the limits of the runtime alone', async () => {
  const wrong = client.chat.completions.create({ ...CAPITAL, n: 0 });
  await expect(wrong).rejects.toBeInstanceOf(BadRequestError);
  await expect(wrong).rejects.toMatchObject({ status: 400, param: 'n' });
  const many = { ...CAPITAL, logprobs: true, top_logprobs: 30, max_tokens: 1 };
  const { choices } = await client.chat.completions.create(many);
  expect(choices[0]!.logprobs!.content![0]!.top_logprobs).toHaveLength(30);
  const limited = new OpenAI({
    fetch: createFetch(runtime, { maxLogprobs: 20 }),
    baseURL: 'http://in-process/v1',
    apiKey: 'any',
    maxRetries: 0,
  });
  await expect(limited.chat.completions.create(many)).rejects.toMatchObject({ param: 'top_logprobs' });
});
