/** Texts, tokens and prompts over HTTP, by `runtime.fetch`: they are those of the engine. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RenderedPrompt } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../../src/serve/http/index.ts';
import { ask } from './exchange.ts';

let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 256 });
  handler = (request) => runtime.fetch(request);
});
afterAll(() => runtime.close());

const post = async (path: string, body: unknown): Promise<Record<string, unknown>> =>
  (await ask(handler, 'POST', path, { body })).body as Record<string, unknown>;
const TEXT = 'Lima — ein „Ort“ 🦙';
const CHAT = { messages: [{ role: 'user' as const, content: TEXT }] };

it('tells its version', async () => {
  expect((await ask(handler, 'GET', '/version')).body).toEqual({
    version: expect.stringMatching(/^\d+\.\d+/),
  });
});

describe('tokens', () => {
  it('of a text and back', async () => {
    const { tokens, count, max_model_len, token_strs } = await post('/tokenize', {
      prompt: TEXT,
      return_token_strs: true,
    });
    const ids = await runtime.tokenize(TEXT, { addSpecialTokens: true, parseSpecial: true });
    expect({ tokens, count, max_model_len }).toEqual({
      tokens: ids,
      count: ids.length,
      max_model_len: 256,
    });
    expect(token_strs).toHaveLength(ids.length);
    expect((token_strs as string[])[0]).toBe(await runtime.detokenize([ids[0]!]));
    expect(await post('/detokenize', { tokens })).toEqual({ prompt: TEXT });
  });

  it('of a chat are those of its prompt', async () => {
    const { tokens, count } = await post('/tokenize', CHAT);
    const { usage, prompt_token_ids } = await runtime.createCompletion({
      ...CHAT,
      max_tokens: 1,
      return_token_ids: true,
    });
    expect({ tokens, count }).toEqual({ tokens: prompt_token_ids, count: usage.prompt_tokens });
  });

  it.each([
    ['a text without one', '/tokenize', {}, 'prompt'],
    ['a text that is none', '/tokenize', { prompt: 5 }, 'prompt'],
    ['a flag that is none', '/tokenize', { prompt: '', return_token_strs: 'yes' }, 'return_token_strs'],
    ['a flag of a chat', '/tokenize', { ...CHAT, return_token_strs: 'yes' }, 'return_token_strs'],
    ['messages that are none', '/tokenize', { messages: 5 }, 'messages'],
    ['an id that is no number', '/detokenize', { tokens: ['x'] }, 'tokens.0'],
    ['an id outside the vocabulary', '/detokenize', { tokens: [1, 10 ** 6] }, 'tokens.1'],
  ])('refuses %s', async (_, path, body, param) => {
    const { status, body: answer } = await ask(handler, 'POST', path, { body });
    expect({ status, answer }).toMatchObject({ status: 400, answer: { error: { param } } });
    expect((answer as { error: { message: string } }).error.message).toMatch(new RegExp(`^${param}: `));
  });

  it('refuses a prompt that is too long, as the wire does', async () => {
    const body = { ...CHAT, max_tokens: 999 };
    const { status, body: answer } = await ask(handler, 'POST', '/v1/chat/completions/render', { body });
    expect({ status, answer }).toMatchObject({
      status: 400,
      answer: { error: { param: 'max_completion_tokens', code: 'context_length_exceeded' } },
    });
    expect((answer as { error: { message: string } }).error.message).toMatch(/^This model's maximum context/);
  });
});

describe('the rendered prompt', () => {
  it('is what is sent', async () => {
    const rendered = await post('/v1/chat/completions/render', CHAT);
    expect(rendered).toEqual(await runtime.renderPrompt(CHAT));
    const { prompt, prompt_token_ids, count } = rendered as unknown as RenderedPrompt;
    expect(prompt).toContain(TEXT);
    expect(await runtime.tokenize(prompt, { parseSpecial: true })).toEqual(prompt_token_ids);
    expect(count).toBe(prompt_token_ids.length);
    expect(rendered).toMatchObject({ object: 'chat.completion.prompt', max_model_len: 256 });
  });

  it('is UNSUPPORTED where the service has none', async () => {
    const { createCompletion, close } = runtime;
    const bare = { createCompletion: createCompletion.bind(runtime), close, [Symbol.asyncDispose]: close };
    for (const [path, body] of [
      ['/v1/chat/completions/render', CHAT],
      ['/tokenize', { prompt: '' }],
      ['/detokenize', { tokens: [] }],
    ] as const) {
      const answer = await ask(createHandler(bare), 'POST', path, { body });
      expect(answer.body, path).toMatchObject({ error: { code: 'UNSUPPORTED' } });
    }
  });

  it('is not for the tokens of others', async () => {
    const options = {
      tokens: [
        { token: 'reader', scopes: ['read'] as const },
        { token: 'user', scopes: ['complete'] as const },
      ],
    };
    const guarded = createHandler(runtime, options);
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    for (const path of ['/v1/chat/completions/render', '/tokenize', '/detokenize'])
      expect((await ask(guarded, 'POST', path, { body: {}, ...as('reader') })).status, path).toBe(403);
    const named = { prompt: 'x', model: '/etc/model.gguf' };
    expect((await ask(guarded, 'POST', '/tokenize', { body: named, ...as('user') })).status).toBe(403);
  });
});
