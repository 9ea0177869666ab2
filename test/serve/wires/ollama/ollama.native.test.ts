/** Ollama's client, unmodified, on the embedded model: chats, prompts, tools, formats, models, errors. */
import { Ollama } from 'ollama';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts';
import { serve } from '../../../../src/serve/http/index.ts';

let runtime: Runtime;
let client: Ollama;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 512 });
  client = new Ollama({ host: 'http://in-process', fetch: runtime.fetch });
});
afterAll(() => runtime.close());

const model = 'onpolicy-tiny';
const QUESTION = 'What is the capital of Peru?';
const LIMA = 'The capital of Peru is Lima.';
const CAPITAL = { model, messages: [{ role: 'user', content: QUESTION }], options: { temperature: 0 } };
const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const ASK_WEATHER = {
  ...CAPITAL,
  messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
  tools: [WEATHER],
  options: { temperature: 0, num_predict: 40 },
};
const COUNTS = { done: true, done_reason: 'stop', eval_count: 10, prompt_eval_count: 17 };

describe("Ollama's client", () => {
  it('chats, whole and streamed', async () => {
    const whole = await client.chat(CAPITAL);
    expect(whole).toMatchObject({ model, message: { role: 'assistant', content: LIMA }, ...COUNTS });
    const { total_duration, load_duration, prompt_eval_duration, eval_duration, created_at } = whole;
    expect(total_duration).toBeGreaterThan(1e5);
    const parts = load_duration + prompt_eval_duration + eval_duration;
    expect(Math.abs(parts - total_duration)).toBeLessThan(10);
    expect(new Date(created_at).getTime()).toBeGreaterThan(Date.now() - 60_000);
    let text = '';
    let last: object = {};
    for await (const part of await client.chat({ ...CAPITAL, model: `${model}:latest`, stream: true })) {
      text += part.message.content;
      last = part;
    }
    expect(text).toBe(LIMA);
    expect(last).toMatchObject({ model: `${model}:latest`, message: { content: '' }, ...COUNTS });
  });

  it('calls tools, whole and streamed, and goes on with their results', async () => {
    const { message } = await client.chat(ASK_WEATHER);
    const streamed: unknown[] = [];
    for await (const part of await client.chat({ ...ASK_WEATHER, stream: true }))
      streamed.push(...(part.message.tool_calls ?? []));
    const call = { function: { name: 'get_weather', arguments: { city: 'Paris' } } };
    for (const calls of [message.tool_calls, streamed]) expect(calls).toMatchObject([call]);
    const messages = [
      ...ASK_WEATHER.messages,
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', tool_name: 'get_weather', content: 'sunny' },
    ];
    const next = await client.chat({ ...ASK_WEATHER, messages });
    expect(next.prompt_eval_count).toBeGreaterThan(30);
    expect(next.done).toBe(true);
  });

  it('continues prompts: with a template, and raw', async () => {
    const options = { temperature: 0, num_predict: 20 };
    const asked = { model, prompt: QUESTION, options };
    expect(await client.generate(asked)).toMatchObject({ response: LIMA, ...COUNTS });
    let text = '';
    for await (const part of await client.generate({ ...asked, stream: true })) text += part.response;
    expect(text).toBe(LIMA);
    const { response } = await client.generate({ ...asked, system: 'Be short.' });
    expect(response).not.toBe('');
    const raw = await client.generate({ ...asked, prompt: 'One, two,', raw: true });
    const { choices } = await runtime.createTextCompletion({
      model,
      prompt: 'One, two,',
      temperature: 0,
      max_tokens: 20,
    });
    expect(raw.response).toBe(choices[0]!.text);
    await expect(client.generate({ ...asked, suffix: 'x' })).rejects.toThrow(
      /suffix: this model has no tokens/,
    );
  });

  it('gets what follows a format, and log-probabilities', async () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer' } },
      required: ['age'],
      additionalProperties: false,
    };
    const { message } = await client.chat({ ...CAPITAL, format: schema, logprobs: true, top_logprobs: 2 });
    expect(JSON.parse(message.content)).toEqual({ age: expect.any(Number) as number });
    const json = await client.generate({
      model,
      prompt: QUESTION,
      format: 'json',
      options: { temperature: 0, num_predict: 60 },
    });
    expect(json.response!.trimStart()[0]).toBe('{');
    const { logprobs } = await client.chat({ ...CAPITAL, logprobs: true, top_logprobs: 2 });
    expect(logprobs).toHaveLength(10);
    expect(logprobs![0]).toMatchObject({ token: expect.any(String) as string, top_logprobs: [{}, {}] });
    const raw = await client.generate({
      model,
      prompt: 'One',
      raw: true,
      logprobs: true,
      top_logprobs: 1,
      options: { temperature: 0, num_predict: 3 },
    });
    expect(raw.logprobs).toHaveLength(3);
  });

  it('may ask for more tokens than the context has left', async () => {
    const options = { temperature: 0, num_predict: 10_000 };
    expect(await client.chat({ ...CAPITAL, options })).toMatchObject({ message: { content: LIMA } });
  });

  it('is told when an answer is cut, and ends what it aborts', async () => {
    const cut = await client.chat({ ...CAPITAL, options: { temperature: 0, num_predict: 3 } });
    expect(cut).toMatchObject({ done_reason: 'length', eval_count: 3 });
    const stream = await client.chat({
      ...CAPITAL,
      options: { stop: ['no such text'], repeat_penalty: 1.5 },
      stream: true,
    });
    stream.abort();
    await expect.poll(() => runtime.stats().running, { interval: 5 }).toBe(0);
  });

  it('lists, shows, loads and unloads models', async () => {
    const { models } = await client.list();
    expect(models[0]).toMatchObject({
      name: model,
      size: expect.any(Number) as number,
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      details: { format: 'gguf', family: expect.stringMatching(/./) as string },
    });
    const shown = await client.show({ model });
    expect(shown).toMatchObject({ capabilities: ['completion', 'tools'], details: models[0]!.details });
    expect(shown.parameters).toBe('num_ctx 512');
    expect(shown.template).toContain('messages');
    expect(shown.model_info).toMatchObject({ 'general.architecture': models[0]!.details.family });
    expect(await client.chat({ model, keep_alive: 0 })).toMatchObject({ done: true, done_reason: 'unload' });
    await expect.poll(() => client.ps(), { interval: 5 }).toEqual({ models: [] });
    for await (const part of await client.generate({ model, prompt: '', stream: true }))
      expect(part).toMatchObject({ done: true, done_reason: 'load', response: '' });
    expect((await client.ps()).models).toMatchObject([{ name: model, context_length: 512 }]);
    expect(await client.pull({ model })).toEqual({ status: 'success' });
    const steps: string[] = [];
    for await (const { status } of await client.pull({ model, stream: true })) steps.push(status);
    expect(steps).toEqual(['pulling manifest', 'success']);
    expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it.each<[string, object, string]>([
    ['a field', { messages: [{ role: 'other' }] }, 'messages.0.role: expected'],
    ['an option', { options: { num_predict: 1.5 } }, 'options.num_predict: expected'],
    ['an option of chats', { options: { temperature: -1 } }, 'options.temperature: expected'],
    ['a schema', { format: { type: 'nothing' } }, 'format'],
    ['a picture', { messages: [{ role: 'user', content: '', images: ['AAAA'] }] }, 'messages.0.images.0'],
    ['a model', { model: 'none' }, 'none'],
    ['a time', { keep_alive: 'soon' }, 'keep_alive: expected a number of seconds'],
  ])('is told what is wrong with %s', async (_, more, message) => {
    for (const stream of [false, true])
      await expect(client.chat({ ...CAPITAL, ...more, stream: stream as true })).rejects.toMatchObject({
        name: 'ResponseError',
        message: expect.stringContaining(message) as string,
      });
  });
});

it('a token decides what its client may do', async () => {
  const server = await serve(runtime, { tokens: [{ token: 'a', scopes: ['complete'] }] });
  const headers = { authorization: 'Bearer a' };
  const allowed = new Ollama({ host: server.url, headers });
  expect((await allowed.chat(CAPITAL)).message.content).toBe(LIMA);
  await expect(allowed.pull({ model: 'hf.co/a/b' })).rejects.toMatchObject({ status_code: 403 });
  await expect(allowed.show({ model: './x.gguf' })).rejects.toMatchObject({ status_code: 403 });
  const refused = new Ollama({ host: server.url });
  await expect(refused.chat(CAPITAL)).rejects.toMatchObject({ status_code: 401 });
  const unknown = await fetch(`${server.url}/api/delete`, { method: 'DELETE' });
  expect([unknown.status, await unknown.json()]).toEqual([404, { error: 'there is no such endpoint' }]);
  expect(await (await fetch(server.url)).text()).toBe('Ollama is running');
  await server.close();
});
