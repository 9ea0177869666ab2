/** Conversations that are too long -> what fits: whole turns, system messages, the last turn; in process and over HTTP. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ConnectedService,
  connect,
  createRuntime,
  fitMessages,
  type Message,
  type Runtime,
  type Server,
  serve,
} from '../../src/index.ts';

let runtime: Runtime;
let server: Server;
let client: ConnectedService;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 256 });
  server = await serve(runtime, { port: 0 });
  client = connect({ baseUrl: `${server.url}/v1/` });
});
afterAll(async () => {
  await client.close();
  await server.close();
  await runtime.close();
});

const words = (count: number): string => Array.from({ length: count }, () => 'word').join(' ');
const tools = [{ type: 'function' as const, function: { name: 'f', parameters: { type: 'object' } } }];
/** A turn with a tool loop. */
const turn = (i: number, count = 6): Message[] => [
  { role: 'user', content: `question ${i} ${words(count)}` },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `call-${i}`, type: 'function', function: { name: 'f', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: `call-${i}`, content: 'result' },
  { role: 'assistant', content: `answer ${i}` },
];
const conversation = (turns: number): Message[] => [
  { role: 'system', content: 'Be brief.' },
  ...Array.from({ length: turns }, (_, i) => turn(i)).flat(),
  { role: 'user', content: 'last question' },
];

it('keeps a conversation that fits', async () => {
  const messages = conversation(1);
  const fitted = await fitMessages(runtime, { messages, tools, max_tokens: 20 });
  expect(fitted).toMatchObject({ messages, dropped: [], contextTokens: 256 });
  expect(fitted.promptTokens).toBe((await runtime.renderPrompt({ messages, tools })).count);
});

it.each([5, 8, 31, 80])(
  'leaves out the fewest oldest turns of %i, as a search one by one does',
  async (turns) => {
    const messages = conversation(turns);
    const request = { messages, tools, max_tokens: 20 };
    const fits = async (dropped: number): Promise<boolean> => {
      const kept = [messages[0]!, ...messages.slice(1 + 4 * dropped)];
      const answer = runtime.createCompletion({ ...request, messages: kept, n: 1, max_tokens: 20 });
      return await answer.then(
        () => true,
        () => false,
      );
    };
    let expected = 0;
    while (!(await fits(expected))) expected += 1;
    expect(expected).toBeGreaterThan(0);
    for (const service of [runtime, client]) {
      const { messages: kept, dropped, promptTokens } = await fitMessages(service, request);
      expect(dropped).toEqual(messages.slice(1, 1 + 4 * expected));
      expect(kept).toEqual([messages[0], ...messages.slice(1 + 4 * expected)]);
      expect(promptTokens + 20).toBeLessThanOrEqual(256);
      expect((await runtime.createCompletion({ ...request, messages: kept })).usage.prompt_tokens).toBe(
        promptTokens,
      );
    }
  },
);

it('keeps a quarter of the context for an answer without a limit', async () => {
  const { promptTokens } = await fitMessages(runtime, { messages: conversation(30), tools });
  expect(promptTokens).toBeLessThanOrEqual(192);
});

it('fails if the last turn alone does not fit', async () => {
  const messages: Message[] = [...turn(0), { role: 'user', content: words(400) }];
  const overflow = { code: 'CONTEXT_OVERFLOW' };
  await expect(fitMessages(runtime, { messages })).rejects.toMatchObject(overflow);
  await expect(
    fitMessages(runtime, { messages: [{ role: 'user', content: words(400) }] }),
  ).rejects.toMatchObject(overflow);
  const wide = fitMessages(runtime, { messages: [{ role: 'user', content: 'a' }], max_tokens: 255 });
  await expect(wide).rejects.toMatchObject(overflow);
});

it('refuses what is no conversation', async () => {
  await expect(fitMessages(runtime, {} as never)).rejects.toThrow(/^messages: expected a list of messages/);
  await expect(fitMessages({}, { messages: [] })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  await expect(fitMessages(runtime, { messages: [], topp: 1 } as never)).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
  });
});
