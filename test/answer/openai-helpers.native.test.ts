import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

/** Our chunks through the official client's stream helper; a late reader starts when the answer is whole. */
async function throughClient(request: ChatCompletionRequest, isLate = false): Promise<ChatCompletionStream> {
  const chunks = await runtime.createCompletion({ ...request, stream: true });
  if (isLate) await expect.poll(() => runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
  const encoder = new TextEncoder();
  const lines = (async function* () {
    for await (const chunk of chunks) yield encoder.encode(`${JSON.stringify(chunk)}\n`);
  })();
  return ChatCompletionStream.fromReadableStream(ReadableStream.from(lines));
}

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
];

describe("the official client's stream helper", () => {
  it('reads our text, its events and the final completion', async () => {
    const request = {
      messages: [{ role: 'user' as const, content: 'What is the capital of France?' }],
      temperature: 0,
    };
    const stream = await throughClient({
      ...request,
      stream_options: { include_usage: true },
      logprobs: true,
      top_logprobs: 2,
    });
    const deltas: string[] = [];
    stream.on('content.delta', ({ delta }) => deltas.push(delta));
    expect(await stream.finalContent()).toBe('The capital of France is Paris.');
    expect(deltas.join('')).toBe('The capital of France is Paris.');
    const final = await stream.finalChatCompletion();
    expect(final.usage).toMatchObject({ prompt_tokens: 17, completion_tokens: 10 });
    expect(final.choices[0]!.logprobs!.content).toHaveLength(10);
    expect(final.choices[0]!.finish_reason).toBe('stop');
  });

  it.each([false, true])('reads our tool calls (late: %s)', async (isLate) => {
    const request = {
      messages: [{ role: 'user' as const, content: 'What is the weather in Paris?' }],
      temperature: 0,
      tools,
    };
    const stream = await throughClient(request, isLate);
    const done: string[] = [];
    stream.on('tool_calls.function.arguments.done', ({ name, arguments: text }) =>
      done.push(`${name} ${text}`),
    );
    const final = await stream.finalChatCompletion();
    expect(done).toEqual(['get_weather {"city": "Paris"}']);
    expect(final.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        tool_calls: [{ type: 'function', function: { name: 'get_weather', arguments: '{"city": "Paris"}' } }],
      },
    });
  });

  it('reads several choices', async () => {
    const request = {
      messages: [{ role: 'user' as const, content: 'Tell me a story.' }],
      n: 3,
      seed: 4,
      temperature: 1,
    };
    const whole = await runtime.createCompletion({ ...request, stream: false });
    const final = await (await throughClient(request)).finalChatCompletion();
    expect(final.choices.map(({ message }) => message.content)).toEqual(
      whole.choices.map(({ message }) => message.content),
    );
  });
});
