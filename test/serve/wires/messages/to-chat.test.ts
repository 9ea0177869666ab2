/** Requests of the messages API -> chat completion requests, and the caller's paths in errors about them. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import type { MessageRequest } from '../../../../src/protocol/index.ts';
import { clientTool } from '../../../../src/serve/wires/messages/client-tools.ts';
import { toChat } from '../../../../src/serve/wires/messages/to-chat.ts';

const ask = (request: Partial<MessageRequest>): MessageRequest => ({
  messages: [{ role: 'user', content: 'Hi' }],
  max_tokens: 5,
  ...request,
});
const chatOf = (request: Partial<MessageRequest>) =>
  JSON.parse(JSON.stringify(toChat(ask(request)).chat)) as object;
const pathOf = (request: Partial<MessageRequest>, path: string): string | undefined => {
  const error = new OnpolicyError('INVALID_REQUEST', `${path}: wrong`, { param: path });
  const renamed = toChat(ask(request)).paths.inError(error) as OnpolicyError;
  expect(renamed.message).toBe(`${renamed.param}: wrong`);
  return renamed.param;
};

const PICTURE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } } as const;
const CALL = { type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 } } as const;

describe('a request', () => {
  it.each<[string, Partial<MessageRequest>, object]>([
    ['limits', { stop_sequences: ['x'], top_k: 3 }, { max_completion_tokens: 5, stop: ['x'], top_k: 3 }],
    [
      'a text of the system',
      { system: 'Be' },
      { messages: [{ role: 'system', content: 'Be' }, { role: 'user' }] },
    ],
    [
      'blocks of the system',
      { system: [{ type: 'text', text: 'Be' }] },
      { messages: [{ role: 'system', content: [{ type: 'text', text: 'Be' }] }, {}] },
    ],
    [
      'no hash that changes with each request',
      {
        system: [
          { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.e5; cch=a51f5; x=cch=1' },
          { type: 'text', text: 'Be; cch=a51f5;' },
        ],
      },
      {
        messages: [
          {
            role: 'system',
            content: [
              { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.e5; cch=00000; x=cch=1' },
              { type: 'text', text: 'Be; cch=a51f5;' },
            ],
          },
          {},
        ],
      },
    ],
    [
      'a picture',
      { messages: [{ role: 'user', content: [PICTURE] }] },
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
          },
        ],
      },
    ],
    [
      'a document',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'document', title: 'T', source: { type: 'text', data: 'D', media_type: 'text/plain' } },
            ],
          },
        ],
      },
      { messages: [{ content: [{ type: 'text', text: 'T\nD' }] }] },
    ],
    [
      'tools',
      { tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' }, strict: true }] },
      {
        tools: [
          {
            type: 'function',
            function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
          },
        ],
      },
    ],
    [
      'a tool whose schema is known',
      { tools: [{ type: 'bash_20250124', name: 'bash', cache_control: null }] },
      {
        tools: [
          {
            type: 'function',
            function: {
              name: 'bash',
              description: expect.stringContaining('bash') as string,
              parameters: { properties: { command: { type: 'string' } } },
            },
          },
        ],
      },
    ],
    [
      'what only Anthropic can read',
      {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'redacted_thinking', data: 'EmwK' },
              { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
              { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
              { type: 'text', text: 'So.' },
            ],
          },
        ],
      },
      { messages: [{ role: 'assistant', content: [{ type: 'text', text: 'So.' }] }] },
    ],
    [
      'any tool',
      { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
      { tool_choice: 'required', parallel_tool_calls: false },
    ],
    [
      'one tool',
      { tool_choice: { type: 'tool', name: 'f' } },
      { tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: true },
    ],
    ['no thoughts', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
    [
      'thoughts',
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      { chat_template_kwargs: { enable_thinking: true, thinking: true } },
    ],
    [
      'thoughts that are not shown',
      { thinking: { type: 'adaptive', display: 'omitted' } },
      { include_reasoning: false },
    ],
    ['effort', { output_config: { effort: 'max' } }, { reasoning_effort: 'max' }],
    [
      'a schema',
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      { response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } },
    ],
    [
      'an answer to go on with',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: 'The' },
        ],
      },
      { continue_final_message: true },
    ],
    ['fields of chats', { seed: 4, min_p: 0.1 }, { seed: 4, min_p: 0.1 }],
  ])('says the same of %s', (_, request, chat) => {
    expect(chatOf(request)).toMatchObject(chat);
  });

  it('keeps calls, thoughts and results in their order', () => {
    const messages: MessageRequest['messages'] = [
      {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: 'Hm' }, { type: 'text', text: 'I ask.' }, CALL],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'sunny' }] },
          { type: 'tool_result', tool_use_id: 'c2', content: 'rain' },
          { type: 'text', text: 'So?' },
          PICTURE,
        ],
      },
    ];
    expect(chatOf({ messages })).toMatchObject({
      messages: [
        {
          role: 'assistant',
          reasoning: 'Hm',
          content: [{ text: 'I ask.' }],
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'sunny' }] },
        { role: 'tool', tool_call_id: 'c2', content: 'rain' },
        { role: 'user', content: [{ type: 'text', text: 'So?' }, { type: 'image_url' }] },
      ],
    });
    expect(chatOf({ messages })).not.toHaveProperty('continue_final_message');
  });
});

it.each<[string, string[], string[]]>([
  ['text_editor_20241022', ['new_str', 'view_range'], ['insert_text']],
  ['text_editor_20250728', ['new_str', 'insert_text'], []],
  ['memory_20250818', ['old_path', 'insert_text', 'view_range'], []],
])('the schema of %s has the fields that its callers read', (type, has, lacks) => {
  const { input_schema } = clientTool(type);
  const fields = Object.keys(input_schema['properties'] as object);
  expect(fields).toEqual(expect.arrayContaining(has));
  for (const field of lacks) expect(fields).not.toContain(field);
});

it.each<[string, Partial<MessageRequest>, string, string]>([
  ['max_tokens', {}, 'max_completion_tokens', 'max_tokens'],
  ['stop_sequences', {}, 'stop.0', 'stop_sequences.0'],
  ['a tool', { tools: [{ name: 'f', input_schema: {} }] }, 'tools.0.function.name', 'tools.0.name'],
  [
    'the schema of a tool',
    { tools: [{ name: 'f', input_schema: {} }] },
    'tools.0.function.parameters.type',
    'tools.0.input_schema.type',
  ],
  ['a message behind the system', { system: 'Be' }, 'messages.1.content', 'messages.0.content'],
  ['the system', { system: 'Be' }, 'messages.0', 'system'],
  [
    'a picture',
    { system: 'Be', messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, PICTURE] }] },
    'messages.1.content.1.image_url.url',
    'messages.0.content.1.source.data',
  ],
  [
    'a picture of a result',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'tool_result', tool_use_id: 'c', content: [PICTURE] },
          ],
        },
      ],
    },
    'messages.1.content.0',
    'messages.0.content.1.content.0',
  ],
  [
    'the schema of the answer',
    { output_config: { format: { type: 'json_schema', schema: {} } } },
    'response_format.json_schema.schema.x',
    'output_config.format.schema.x',
  ],
])('an error about %s names it as the caller does', (_, request, own, callers) => {
  expect(pathOf(request, own)).toBe(callers);
});
