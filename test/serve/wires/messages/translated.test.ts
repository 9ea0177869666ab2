/** Requests of the messages API without faults, drawn at random -> chats without faults of the chat's schema: it need not be asked again. */
import { expect, it } from 'vitest';
import { checkRequest, EXTRA_FIELDS } from '../../../../src/protocol/index.ts';
import { schemaFaults } from '../../../../src/protocol/validate.ts';
import { toChat } from '../../../../src/serve/wires/messages/to-chat.ts';
import { MESSAGE_ROWS } from '../../../protocol/message-rows.ts';
import { SAMPLING_ROWS } from '../../../protocol/sampling-rows.ts';

let state = 1;
/** A number from 0 to `count` - 1. */
function draw(count: number): number {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % count;
}
const pick = <T>(...values: T[]): T => values[draw(values.length)]!;
const some = <T>(make: () => T, most = 3): T[] => Array.from({ length: draw(most + 1) }, make);
const odd = (): unknown => pick<unknown>(null, '', 'x', 0, -1, [], {}, { a: [null, 1.5] }, Number.NaN);
const maybe = (name: string, make: () => unknown): object => (draw(3) === 0 ? { [name]: make() } : {});

const text = (): string => pick('', 'a', '\ud800', 'x'.repeat(300), 'data:image/png;base64,');
const name = (): string => pick('f', 'ä b', '0', 'x'.repeat(100));
const textBlock = (): object => ({ type: 'text', text: text(), ...maybe('citations', odd) });
const source = (): object =>
  pick<object>(
    { type: 'base64', data: text(), media_type: text() },
    { type: 'url', url: pick('x', 'https://a', 'data:') },
  );
const resultBlock = (): object =>
  pick<() => object>(
    textBlock,
    () => ({ type: 'image', source: source() }),
    () => ({
      type: 'document',
      source: { type: 'text', data: text(), media_type: 'text/plain' },
      ...maybe('title', () => pick(null, text())),
    }),
  )();
const block = (): object =>
  pick<() => object>(
    resultBlock,
    () => ({ type: 'thinking', thinking: text(), ...maybe('signature', odd) }),
    () => ({ type: 'tool_use', id: text(), name: name(), input: pick<object>({}, { a: odd() }) }),
    () => ({
      type: 'tool_result',
      tool_use_id: text(),
      ...maybe('content', () => pick<unknown>(null, text(), some(resultBlock))),
    }),
    () => ({ type: 'redacted_thinking', data: odd() }),
  )();
const tool = (): object =>
  pick<object>(
    {
      name: name(),
      input_schema: pick<object>({}, { type: 'object' }, { a: odd() }, new Map()),
      ...maybe('strict', () => pick(null, true)),
    },
    { type: 'custom', name: name(), input_schema: {}, description: pick(null, text()) },
    { type: pick('bash_20250124', 'text_editor_20250728', 'memory_20250818'), name: name() },
  );

/** Fields that chats have as well, with values that are sound in a chat, and some that are not. */
const rows = Object.entries({ ...SAMPLING_ROWS, ...MESSAGE_ROWS }).filter(
  ([field]) => EXTRA_FIELDS.includes(field) || ['model', 'temperature', 'top_p', 'top_k'].includes(field),
);
const shared = (): object =>
  Object.fromEntries(
    some(() => pick(...rows), 4).map(([field, { good, bad }]) => [
      field,
      pick(...good, ...bad.slice(0, 2))[0],
    ]),
  );

const request = (): object => ({
  messages: some(() => ({
    role: pick('user', 'assistant', 'system'),
    content: pick<() => unknown>(text, () => some(block))(),
  })),
  max_tokens: pick(1, 2 ** 31, 2 ** 53),
  ...shared(),
  ...maybe('system', () => pick<unknown>(null, text(), some(textBlock))),
  ...maybe('stop_sequences', () => pick<unknown>(null, [], ['a', ' '])),
  ...maybe('stream', () => pick(null, true, false)),
  ...maybe('thinking', () =>
    pick<unknown>(null, {
      type: pick('enabled', 'adaptive', 'disabled'),
      budget_tokens: pick(null, 1),
      display: pick(null, 'omitted'),
    }),
  ),
  ...maybe('tools', () => pick<unknown>(null, some(tool))),
  ...maybe('tool_choice', () =>
    pick<unknown>(
      null,
      { type: pick('auto', 'any', 'none') },
      { type: 'tool', name: name(), disable_parallel_tool_use: pick(true, false) },
    ),
  ),
  ...maybe('output_config', () =>
    pick<unknown>(null, {
      effort: pick(null, 'low', 'xhigh', 'max'),
      format: pick<unknown>(null, { type: 'json_schema', schema: { a: odd() } }),
    }),
  ),
});

it('a chat made of a sound request has the schema of chats', () => {
  let sound = 0;
  for (let i = 0; i < 4000; i++) {
    const given = request();
    try {
      checkRequest('MessageRequest', given, {});
    } catch {
      continue;
    }
    let chat: object;
    try {
      chat = toChat(given as never).chat;
    } catch {
      continue; // not JSON data
    }
    sound += 1;
    const { listed } = schemaFaults('ChatCompletionRequest', chat, 'fault');
    expect(listed.map(({ msg }) => msg)).toEqual([]);
  }
  expect(sound).toBeGreaterThan(800);
});
