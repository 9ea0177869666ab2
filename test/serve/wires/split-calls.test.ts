/** Deltas with text behind the end of a call -> items and blocks in the order in which they came. */
import { expect, it } from 'vitest';
import type {
  ChatCompletionChunk,
  ChunkDelta,
  ResponseObject,
  ToolCallDelta,
} from '../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../src/protocol/service/index.ts';
import { toEvents as toMessageEvents } from '../../../src/serve/wires/messages/to-events.ts';
import { toEvents as toResponseEvents } from '../../../src/serve/wires/responses/to-events.ts';

const begin = (index: number, more: string): ToolCallDelta =>
  ({
    index,
    id: `call-${index}`,
    type: 'function',
    function: { name: `f${index}`, arguments: more },
  }) as ToolCallDelta;
const more = (index: number, text: string): ToolCallDelta =>
  ({ index, function: { arguments: text } }) as ToolCallDelta;

/** A call whose end comes with text and the next call in one delta. */
const DELTAS: ChunkDelta[] = [
  { content: 'Well.', tool_calls: [begin(0, '{"a"')] },
  { content: 'And', tool_calls: [more(0, ': 1}'), begin(1, '{'), more(1, '"b"')] },
  { content: 'so.', tool_calls: [more(1, ': 2}')] },
];

function chunks(): ChatCompletionStream {
  const all = DELTAS.map((delta) => ({
    id: 'chatcmpl-1',
    created: 5,
    model: 'm',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
  })) as unknown as ChatCompletionChunk[];
  return new ChatCompletionStream(
    (async function* () {
      yield* all;
    })(),
    () => {},
  );
}

const IN_ORDER = ['Well.', 'f0 {"a": 1}', 'And', 'f1 {"b": 2}', 'so.'];

it('of a response', async () => {
  let response: ResponseObject | null = null;
  const { events: iterator } = toResponseEvents(chunks(), { input: 'x' }, (ended) => {
    response = ended;
  });
  while (!(await iterator.next()).done);
  const items = response!.output.map((item) =>
    item.type === 'function_call'
      ? `${item.name} ${item.arguments}`
      : (item as { content: { text: string }[] }).content[0]!.text,
  );
  expect(items).toEqual(IN_ORDER);
});

it('of a message', async () => {
  const blocks: string[] = [];
  const { events: iterator } = toMessageEvents(chunks(), 100);
  for (let read = await iterator.next(); !read.done; read = await iterator.next()) {
    const event = read.value;
    if (event.type === 'content_block_start')
      blocks[event.index] = event.content_block.type === 'tool_use' ? `${event.content_block.name} ` : '';
    if (event.type !== 'content_block_delta') continue;
    const { delta } = event;
    if (delta.type === 'text_delta') blocks[event.index] += delta.text;
    if (delta.type === 'input_json_delta') blocks[event.index] += delta.partial_json;
  }
  expect(blocks).toEqual(IN_ORDER);
});
