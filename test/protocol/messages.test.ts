/** Messages: every variant, every form of content, and the one form they become. */
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../src/protocol/index.ts';
import { checkAndAdmitChat } from '../../src/protocol/index.ts';
import { faultsOfInput, WEATHER } from './request.ts';

const empty: ChatMessage = {
  role: 'user',
  content: [],
  name: null,
  tool_calls: null,
  tool_call_id: null,
  reasoning: null,
  refusal: null,
  tools: null,
};
const text = (...texts: string[]) => texts.map((one) => ({ type: 'text', text: one }));
const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
const image = { type: 'image_url', image_url: { url: 'data:,', detail: 'low' }, uuid: 'u' };

function normal(message: unknown, wire = false): ChatMessage {
  return checkAndAdmitChat({ messages: [message] }, { wire }).messages[0]!;
}

function messagesOf(message: unknown, wire = false): string[] {
  return faultsOfInput({ messages: [message] }, { wire }).map(({ msg }) => msg);
}

describe('variants', () => {
  it.each<[string, unknown, Partial<ChatMessage>]>([
    [
      'developer',
      { role: 'developer', content: 'a', tools: [WEATHER] },
      { content: text('a') as never, tools: [WEATHER] as never },
    ],
    ['system', { role: 'system', content: 'a', name: 'n' }, { content: text('a') as never, name: 'n' }],
    ['user', { role: 'user', content: 'a', name: null }, { content: text('a') as never }],
    [
      'assistant',
      { role: 'assistant', content: 'a', refusal: 'no' },
      { content: text('a') as never, refusal: 'no' },
    ],
    [
      'assistant with calls',
      { role: 'assistant', content: null, tool_calls: [call] },
      { content: [], tool_calls: [call] as never },
    ],
    [
      'assistant with no calls',
      { role: 'assistant', content: '', tool_calls: [] },
      { content: text('') as never },
    ],
    [
      'assistant with reasoning under its newer name',
      { role: 'assistant', reasoning: 'a', reasoning_content: 'b' },
      { reasoning: 'a' },
    ],
    [
      'assistant with reasoning under its older name',
      { role: 'assistant', reasoning: null, reasoning_content: 'b' },
      { reasoning: 'b' },
    ],
    [
      'assistant with calls without arguments',
      {
        role: 'assistant',
        tool_calls: [{ function: { name: 'f', arguments: null } }, { function: { name: 'g' } }],
      },
      {
        tool_calls: ['f', 'g'].map((name) => ({
          id: null,
          type: 'function',
          function: { name, arguments: '{}' },
        })),
      },
    ],
    [
      'assistant as a response has it',
      {
        role: 'assistant',
        content: 'a',
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        tool_calls: [],
        reasoning: null,
        reasoning_content: null,
      },
      { content: text('a') as never },
    ],
    [
      'tool',
      { role: 'tool', tool_call_id: 'c1', content: '5' },
      { content: text('5') as never, tool_call_id: 'c1' },
    ],
    [
      'function',
      { role: 'function', name: 'f', content: '5' },
      { role: 'tool', content: text('5') as never, name: 'f' },
    ],
    [
      'assistant with a call in the older form',
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
      { tool_calls: [{ ...call, id: 'call00000' }] as never },
    ],
    [
      'assistant with a call of a custom tool',
      {
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'f', input: 'a "b"' } }],
      },
      {
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"input": "a \\"b\\""}' } },
        ] as never,
      },
    ],
    [
      'custom',
      { role: 'critic', content: 'a', tool_call_id: 'x', tool_calls: [call], reasoning: 'r' },
      { content: text('a') as never, tool_call_id: 'x', tool_calls: [call] as never, reasoning: 'r' },
    ],
    ['generic', { role: '__proto__', content: 'a' }, { content: text('a') as never }],
  ])('%s', (_, message, expected) => {
    expect(normal(message)).toEqual({ ...empty, role: (message as ChatMessage).role, ...expected });
  });

  it('of the role function answer the last call in the older form', () => {
    const { messages } = checkAndAdmitChat({
      messages: [
        { role: 'function', name: 'f', content: 'early' },
        { role: 'assistant', function_call: { name: 'f' } },
        { role: 'function', name: 'f', content: '5' },
        { role: 'assistant', content: 'five', function_call: null },
        { role: 'assistant', function_call: { name: 'g' } },
        { role: 'function', name: 'g', content: '6' },
      ],
    });
    expect(
      messages.map(({ role, tool_calls, tool_call_id }) => [role, tool_calls?.[0]?.id, tool_call_id]),
    ).toEqual([
      ['tool', undefined, null],
      ['assistant', 'call00001', null],
      ['tool', undefined, 'call00001'],
      ['assistant', undefined, null],
      ['assistant', 'call00004', null],
      ['tool', undefined, 'call00004'],
    ]);
  });

  it.each<[string, unknown, string[]]>([
    ['no object', 'hi', ['messages.0: expected an object, got "hi"']],
    ['no role', { content: 'a' }, ['messages.0.role: this field is required, got nothing']],
    ['role of another type', { role: 5 }, ['messages.0.role: expected a non-empty string, got 5']],
    ['empty role', { role: '' }, ['messages.0.role: expected a non-empty string, got ""']],
    [
      'name of another type',
      { role: 'user', name: 5 },
      ['messages.0.name: expected a string or null, got 5'],
    ],
    [
      'calls of another type',
      { role: 'assistant', tool_calls: {} },
      ['messages.0.tool_calls: expected a list or null, got an object'],
    ],
    [
      'a call without a function',
      { role: 'assistant', tool_calls: [{ id: 'x' }] },
      ['messages.0.tool_calls.0.function: this field is required, got nothing'],
    ],
    [
      'arguments that are no text',
      { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: {} } }] },
      ['messages.0.tool_calls.0.function.arguments: expected a string or null, got an object'],
    ],
    [
      'a field of another variant',
      { role: 'user', content: 'a', tool_call_id: 'x' },
      ['messages.0.tool_call_id: not a field of messages.0'],
    ],
    [
      'a misspelt field',
      { role: 'assistant', contents: 'a' },
      ['messages.0.contents: not a field of messages.0; did you mean content?'],
    ],
    [
      'two faults',
      { role: 'tool', tool_call_id: 5, content: 5 },
      [
        'messages.0.content: expected a string, a list or null, got 5',
        'messages.0.tool_call_id: expected a string or null, got 5',
      ],
    ],
  ])('refuse %s', (_, message, expected) => {
    expect(messagesOf(message)).toEqual(expected);
  });

  it('drop over the wire what their role has no use for, whatever it is', () => {
    const junk = { tool_calls: 'x', tool_call_id: 5, reasoning: [], refusal: {}, tools: 7, foo: null };
    expect(normal({ role: 'user', content: 'a', ...junk }, true)).toEqual({ ...empty, content: text('a') });
  });

  it('may be none', () => {
    expect(checkAndAdmitChat({ messages: [] }).messages).toEqual([]);
  });
});

describe('files', () => {
  const content = (file_data: unknown, filename?: string) =>
    normal({ role: 'user', content: [{ type: 'file', file: { file_data, filename } }] }).content;

  it.each<[string, unknown, string]>([
    ['percent-encoded text', 'data:text/plain,a%20b%C3%A9', 'a bé'],
    ['text in base64', 'data:text/csv;base64,YSxiCg==', 'a,b\n'],
    ['text in another encoding', 'data:text/plain;charset=iso-8859-1;base64,6Q==', 'é'],
    ['an empty text', 'data:text/plain,', ''],
    ['JSON', 'data:application/json;base64,e30=', '{}'],
    ['no type', 'data:;base64,aGk=', 'hi'],
    ['bare base64', 'aGk=', 'hi'],
    ['bytes', new TextEncoder().encode('hi é'), 'hi é'],
  ])('of %s are text', (_, data, expected) => {
    expect(content(data)).toEqual(text(expected));
    expect(content(data, 'a.txt')).toEqual(text(`a.txt:\n${expected}`));
  });

  it.each<[string, unknown]>([
    ['a picture', 'data:image/png;base64,aGk='],
    ['bytes that are no text', Uint8Array.of(0x89, 0x50)],
    ['bytes with NUL', Uint8Array.of(0x41, 0)],
    ['a type and bytes that are no text', 'data:application/pdf;base64,/w=='],
    ['a path', 'file:///a.png'],
    ['an address', 'https://a/b.txt'],
  ])('of %s are media', (_, data) => {
    expect(content(data)).toMatchObject([{ type: 'media', kind: 'file' }]);
  });
});

describe('content', () => {
  it.each<[string, unknown, unknown[]]>([
    ['text', 'a', text('a')],
    ['null', null, []],
    ['nothing', undefined, []],
    ['no parts', [], []],
    ['bare strings', ['a', ''], text('a', '')],
    [
      'text parts',
      [
        { type: 'text', text: 'a' },
        { type: 'input_text', text: 'b' },
        { type: 'output_text', text: 'c', annotations: [] },
        { type: 'refusal', refusal: 'd' },
        { type: 'thinking', thinking: 'e' },
      ],
      text('a', 'b', 'c', 'd', 'e'),
    ],
    [
      'parts whose text is null',
      [{ type: 'text', text: null }, { type: 'refusal', refusal: null }, 'a'],
      text('a'),
    ],
    ['media', ['a', image], [...text('a'), { type: 'media', kind: 'image_url', part: image }]],
    ...['input_image', 'image_pil', 'image_embeds', 'audio_embeds'].map(
      (kind): [string, unknown, unknown[]] => [
        kind,
        [{ type: kind, x: 1 }],
        [{ type: 'media', kind, part: { type: kind, x: 1 } }],
      ],
    ),
    ...['audio_url', 'video_url'].map((kind): [string, unknown, unknown[]] => [
      kind,
      [{ type: kind, [kind]: { url: 'u' } }],
      [{ type: 'media', kind, part: { type: kind, [kind]: { url: 'u' } } }],
    ]),
    [
      'input_audio',
      [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }],
      [
        {
          type: 'media',
          kind: 'input_audio',
          part: { type: 'input_audio', input_audio: { data: '', format: 'wav' } },
        },
      ],
    ],
  ])('%s', (_, content, expected) => {
    for (const role of ['user', 'system', 'assistant', 'tool', 'x'])
      expect(normal({ role, content }).content).toEqual(expected);
  });

  it.each<[string, unknown, string]>([
    ['a number', 5, ': expected a string, a list or null, got 5'],
    ['an object', {}, ': expected a string, a list or null, got an object'],
    ['a part that is null', [null], '.0: expected a string or an object, got null'],
    ['a part without type', [{ text: 'a' }], '.0.type: this field is required, got nothing'],
    ['a part without text', [{ type: 'text' }], '.0.text: this field is required, got nothing'],
    ['a text that is none', [{ type: 'text', text: 5 }], '.0.text: expected a string or null, got 5'],
    [
      'a misspelt field',
      [{ type: 'text', text: 'a', texts: 1 }],
      '.0.texts: not a field of messages.0.content.0; did you mean text?',
    ],
    [
      'an address that is none',
      [{ type: 'image_url', image_url: 'u' }],
      '.0.image_url: expected an object, got "u"',
    ],
    [
      'an empty address',
      [{ type: 'video_url', video_url: { url: '' } }],
      '.0.video_url.url: expected a non-empty string, got ""',
    ],
    [
      'sound without data',
      [{ type: 'input_audio', input_audio: { format: 'wav' } }],
      '.0.input_audio.data: this field is required, got nothing',
    ],
  ])('refuses %s', (_, content, expected) => {
    expect(messagesOf({ role: 'user', content })).toEqual([`messages.0.content${expected}`]);
  });

  it('refuses parts of an unknown type, and says which there are', () => {
    const [message] = messagesOf({ role: 'user', content: [{ type: 'folder' }] });
    expect(message).toMatch(/^messages\.0\.content\.0\.type: expected "text", .* or "file", got "folder"$/);
  });
});
