/** Chunks -> events of the responses API, without a model. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import type { ChatCompletionChunk, ResponseStreamEvent } from '../../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../../src/protocol/service/index.ts';
import { toChat } from '../../../../src/serve/wires/responses/to-chat.ts';
import { toEvents } from '../../../../src/serve/wires/responses/to-events.ts';

const chunk = (content: string): ChatCompletionChunk =>
  ({
    id: 'chatcmpl-1',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
  }) as unknown as ChatCompletionChunk;

async function eventsOf(
  texts: readonly string[],
  error: Error,
): Promise<{ events: ResponseStreamEvent[]; thrown: unknown }> {
  const chunks = (async function* () {
    for (const text of texts) yield chunk(text);
    throw error;
  })();
  const { events: iterator } = toEvents(new ChatCompletionStream(chunks, () => {}), { input: 'x' }, () => {
    throw new Error('it did not end');
  });
  const events: ResponseStreamEvent[] = [];
  try {
    for (let read = await iterator.next(); !read.done; read = await iterator.next()) events.push(read.value);
    return { events, thrown: null };
  } catch (thrown) {
    return { events, thrown };
  }
}

describe('an answer that fails', () => {
  const error = new OnpolicyError('BACKEND_FAILED', 'the device is gone');

  it('in the middle ends with response.failed, then throws', async () => {
    const { events, thrown } = await eventsOf(['a', 'b'], error);
    expect(thrown).toBe(error);
    const last = events.at(-1)!;
    expect(last).toMatchObject({
      type: 'response.failed',
      sequence_number: events.length - 1,
      response: { status: 'failed', error: { code: 'server_error', message: 'the device is gone' } },
    });
    expect(events.filter(({ type }) => type === 'response.output_text.delta')).toHaveLength(2);
  });

  it.each<[string, string[], Error]>([
    ['before it has begun', [], error],
    ['because its reader left', ['a'], new OnpolicyError('ABORTED', 'left')],
  ])('%s only throws', async (_, texts, cause) => {
    const { events, thrown } = await eventsOf(texts, cause);
    expect(thrown).toBe(cause);
    expect(events.map(({ type }) => type)).not.toContain('response.failed');
  });
});

it.each([
  ['auto', 'auto'],
  [
    { type: 'function' as const, name: 'f' },
    { type: 'function', function: { name: 'f' } },
  ],
  [
    {
      type: 'allowed_tools' as const,
      mode: 'required' as const,
      tools: [{ type: 'function' as const, name: 'f' }],
    },
    {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
    },
  ],
] as const)('tool_choice %j', (given, expected) => {
  expect(toChat({ input: 'x', tool_choice: given }, []).chat.tool_choice).toEqual(expected);
});
