/** Tools of a responses request: in namespaces, of OpenAI's own servers, and their calls in answers and in the input. */
import { expect, it } from 'vitest';
import {
  type ChatCompletionRequest,
  checkAndAdmitChat,
  type ResponseObject,
} from '../../../../src/protocol/index.ts';
import { createHandler } from '../../../../src/serve/http/index.ts';
import type { Servable } from '../../../../src/serve/http/server/handler-options.ts';
import { createMemoryService } from '../../../fakes/memory-service.ts';
import { type Answer, ask } from '../../http/exchange.ts';

const parameters = { type: 'object', properties: { id: { type: 'string' } } };
const fn = (name: string) => ({ type: 'function', name, parameters, strict: false });
const TOOLS = [
  { type: 'web_search', external_web_access: false },
  fn('look'),
  {
    type: 'namespace',
    name: 'agents',
    description: 'Sub-agents',
    tools: [fn('close'), { type: 'custom', name: 'tell' }],
  },
  { type: 'image_generation' },
];

/** Calls `agents__close`; keeps what it was asked. */
function openCalling(): { asked: ChatCompletionRequest[]; post: (body: object) => Promise<Answer> } {
  const memory = createMemoryService();
  const asked: ChatCompletionRequest[] = [];
  const createCompletion = async (request: ChatCompletionRequest) => {
    checkAndAdmitChat(request);
    asked.push(request);
    const { stream: _, stream_options: _options, ...whole } = request;
    const answer = await memory.createCompletion({ ...whole, tools: null, tool_choice: null });
    const called = { name: 'agents__close', arguments: '{"id":"7"}' };
    const tool_calls = [{ id: 'call_1', type: 'function' as const, function: called }];
    const [choice] = answer.choices;
    return { ...answer, choices: [{ ...choice!, message: { ...choice!.message, content: '', tool_calls } }] };
  };
  const handler = createHandler({ ...memory, createCompletion } as never as Servable);
  return {
    asked,
    post: (body) => ask(handler, 'POST', '/v1/responses', { body: { input: 'Hi', tools: TOOLS, ...body } }),
  };
}

it('become the tools of a chat, and their calls get their names back', async () => {
  const { asked, post } = openCalling();
  const tools = [...TOOLS, { ...fn('see'), shade: 1 }];
  const { status, headers, body } = await post({ tools });
  expect(status).toBe(200);
  expect(headers.get('x-ignored-fields')).toBe('tools.web_search, tools.image_generation, tools.4.shade');
  expect(asked[0]!.tools).toMatchObject([
    { type: 'function', function: { name: 'look' } },
    { type: 'function', function: { name: 'agents__close', parameters } },
    { type: 'custom', custom: { name: 'agents__tell' } },
    { type: 'function', function: { name: 'see' } },
  ]);
  const { output, tools: shown } = body as ResponseObject;
  expect(output).toMatchObject([
    { type: 'function_call', namespace: 'agents', name: 'close', call_id: 'call_1' },
  ]);
  expect(shown).toMatchObject([
    { name: 'look' },
    { type: 'namespace', name: 'agents', tools: [{ name: 'close' }, { name: 'tell' }] },
    { name: 'see' },
  ]);
});

it.each<[string, (output: ResponseObject['output']) => object[]]>([
  ['as they are', (output) => output],
  ['by reference', ([call]) => [{ type: 'item_reference', id: call!.id }]],
])('stand in the next request %s', async (_, toInput) => {
  const { asked, post } = openCalling();
  const { output } = (await post({})).body as ResponseObject;
  const result = { type: 'function_call_output', call_id: 'call_1', output: 'closed' };
  const { status } = await post({ input: [{ role: 'user', content: 'Hi' }, ...toInput(output), result] });
  expect(status).toBe(200);
  expect(asked[1]!.messages).toMatchObject([
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      tool_calls: [{ id: 'call_1', function: { name: 'agents__close', arguments: '{"id":"7"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'closed' },
  ]);
});

it.each<[object, string, number, string]>([
  [{ tool_choice: { type: 'web_search' } }, 'tool_choice.type', 400, 'got "web_search"'],
  [
    { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'image_generation' }] } },
    'tool_choice.tools.0.type',
    400,
    'got "image_generation"',
  ],
  [
    { tool_choice: 'required', tools: [TOOLS[0]] },
    'tool_choice',
    400,
    'at least one tool that the caller runs',
  ],
  [{ tools: [TOOLS[0], { type: 'funktion', name: 'a' }] }, 'tools.1.type', 400, 'got "funktion"'],
  [{ tools: [TOOLS[0], { ...fn('a'), parameters: 'none' }] }, 'tools.1.parameters', 400, 'got "none"'],
  [{ tools: [fn('agents__close'), TOOLS[2]] }, 'tools.1.tools.0.name', 400, 'a name that no other tool has'],
  [{ input: [{ type: 'item_reference', id: 'fc_1' }] }, 'input.0.id', 404, 'no stored item fc_1'],
])('%j is refused at %s', async (body, param, status, message) => {
  const { asked, post } = openCalling();
  const answer = await post(body);
  expect(answer).toMatchObject({ status, body: { error: { param } } });
  expect((answer.body as { error: { message: string } }).error.message).toContain(message);
  expect(asked).toEqual([]);
});

it('may name one in a namespace as the choice', async () => {
  const { asked, post } = openCalling();
  await post({ tool_choice: { type: 'function', namespace: 'agents', name: 'close' } });
  expect(asked[0]!.tool_choice).toEqual({ type: 'function', function: { name: 'agents__close' } });
});
