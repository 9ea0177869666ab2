/** A response that was cut off in a call -> the next request, with the output sent back or by the id of the response. */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest } from '../../../../src/protocol/index.ts';
import { createFetch } from '../../../../src/serve/http/index.ts';

const BROKEN = '{"city": "Par';
const TOOL = {
  type: 'function' as const,
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
};

function cutting(): { client: OpenAI; asked: ChatCompletionRequest[] } {
  const asked: ChatCompletionRequest[] = [];
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: BROKEN } };
  const answer = {
    ...{ id: 'chatcmpl-1', created: 5, model: 'm', usage: null },
    choices: [{ message: { content: null, tool_calls: [call] }, logprobs: null, finish_reason: 'length' }],
  } as unknown as ChatCompletion;
  const service = {
    createCompletion: async (request: ChatCompletionRequest) => {
      asked.push(request);
      return answer;
    },
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const fetch = createFetch(service as never);
  return {
    asked,
    client: new OpenAI({ fetch, baseURL: 'http://in-process/v1', apiKey: 'any', maxRetries: 0 }),
  };
}

describe('a call that was cut off', () => {
  it.each(['sent back', 'by its id'])('goes on %s', async (way) => {
    const { client, asked } = cutting();
    const ask = { model: 'm', tools: [TOOL] };
    const first = await client.responses.create({ ...ask, input: 'Weather?' });
    expect(first.output).toMatchObject([{ type: 'function_call', arguments: BROKEN }]);
    const [called] = first.output as OpenAI.Responses.ResponseFunctionToolCall[];
    const result = { type: 'function_call_output' as const, call_id: called!.call_id, output: 'cut off' };
    await client.responses.create(
      way === 'by its id'
        ? { ...ask, previous_response_id: first.id, input: [result] }
        : { ...ask, input: [{ role: 'user', content: 'Weather?' }, called!, result] },
    );
    expect(asked[1]!.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ function: { name: 'weather', arguments: BROKEN } }] },
      { role: 'tool', content: 'cut off' },
    ]);
  });

  it('can be sent back as a message of a chat', async () => {
    const { client, asked } = cutting();
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }];
    const { choices } = await client.chat.completions.create({ model: 'm', messages });
    const { message } = choices[0]!;
    const result = {
      role: 'tool' as const,
      tool_call_id: message.tool_calls![0]!.id,
      content: 'cut off',
    };
    await client.chat.completions.create({
      model: 'm',
      messages: [...messages, { ...message, role: 'assistant' }, result],
    });
    expect(asked[1]!.messages[1]).toMatchObject({ tool_calls: [{ function: { arguments: BROKEN } }] });
  });
});
