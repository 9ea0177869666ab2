/** `resetPrefixCache` in process, over HTTP and in a pool: how many tokens of a prompt the next answer finds in the cache. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, createHandler, createPool, type Handler } from '../../../src/serve/http/index.ts';
import { ask } from './exchange.ts';

const PATH = '/reset_prefix_cache';
const PROMPT = 'Once upon a time there was a fox who wanted to read every book of the forest.';

let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 256 });
  const tokens = (['complete', 'read', 'train', 'admin'] as const).map((scope) => ({
    token: scope,
    scopes: [scope],
  }));
  handler = createHandler(runtime, { tokens });
});
afterAll(() => runtime.close());

/** Answers the prompt, and returns how many of its tokens were cached. */
async function cached(): Promise<number> {
  const { usage } = await runtime.createTextCompletion({ prompt: PROMPT, max_tokens: 1 });
  return usage!.prompt_tokens_details!.cached_tokens!;
}

const post = async (query = '', token = 'admin') =>
  await ask(handler, 'POST', PATH + query, { headers: { authorization: `Bearer ${token}` } });

const client = () =>
  connect({
    baseUrl: 'http://localhost',
    apiKey: 'admin',
    fetch: async (input, init) => await handler(new Request(input, init)),
  });

describe('resetPrefixCache', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['of a runtime', () => runtime.resetPrefixCache()],
    ['over HTTP', async () => (await post()).body],
    [
      'over HTTP with flags of vLLM',
      async () => (await post('?reset_running_requests=0&reset_external=false')).body,
    ],
    ['of a client', () => client().resetPrefixCache!({ reset_running_requests: true })],
    ['of a pool', () => createPool([client(), runtime]).resetPrefixCache!({})],
  ])('%s: the next prompt is computed from its first token on', async (_, reset) => {
    await cached();
    expect(await cached()).toBeGreaterThan(5);
    expect(await reset()).toEqual({ success: true });
    expect(await cached()).toBe(0);
  });

  it('keeps the cache while requests run, unless they are computed again', async () => {
    const request = { prompt: PROMPT, max_tokens: 60, ignore_eos: true, seed: 7, temperature: 1 } as const;
    const expected = (await runtime.createTextCompletion(request)).choices[0]!.text;
    for (const reset_running_requests of [false, true]) {
      const stream = await runtime.createTextCompletion({ ...request, stream: true });
      let text = '';
      let success: boolean | null = null;
      for await (const { choices } of stream) {
        text += choices[0]?.text ?? '';
        success ??= (await runtime.resetPrefixCache({ reset_running_requests })).success;
      }
      expect(success).toBe(reset_running_requests);
      expect(text).toBe(expected);
    }
  });

  it.each(['complete', 'read', 'train'])('needs the scope admin, not %s', async (token) => {
    expect((await post('', token)).status).toBe(403);
  });

  it.each([
    ['?reset_running_requests=maybe', 'reset_running_requests', 'INVALID_REQUEST'],
    ['?reset_external=true', 'reset_external', 'UNSUPPORTED'],
  ])('refuses %s', async (query, param, code) => {
    const { status, body } = await post(query);
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { param, code } });
  });

  it('refuses a field that it does not have', async () => {
    await expect(runtime.resetPrefixCache({ running: true } as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('running'),
    });
  });
});
