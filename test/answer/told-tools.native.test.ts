/** Tools through a template that shows none: the model is told about them in words, calls are read, whole and streamed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { functionsOf } from '../fakes/calls.ts';
import { chunksOf, EXACT_MODEL, forced, PLAIN } from './fields/model.ts';

let runtime: Runtime;
beforeAll(async () => {
  const model = { path: EXACT_MODEL, contextSize: 2048, threads: 1 };
  runtime = await createRuntime({
    model: { ...model, chatTemplate: PLAIN },
    models: { silent: { ...model, chatTemplate: PLAIN, toolFormat: 'none' } },
  });
});
afterAll(() => runtime.close());

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      description: 'The weather of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];
const TEXT = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
const CALL = { name: 'get_weather', arguments: '{"city": "Rome"}' };

it('calls are read, whole and streamed, and free text is text', async () => {
  const asked = await forced(runtime, TEXT, { tools });
  const { choices } = await runtime.createCompletion({ ...asked, stream: false });
  expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
  expect(functionsOf(choices[0]!.message.tool_calls)).toEqual([CALL]);
  const deltas = (await chunksOf(runtime, asked)).flatMap(
    ({ choices }) => choices[0]?.delta.tool_calls ?? [],
  );
  expect(deltas.map((delta) => delta.function?.name ?? '').join('')).toBe(CALL.name);
  expect(deltas.map((delta) => delta.function?.arguments ?? '').join('')).toBe(CALL.arguments);
  const plain = await runtime.createCompletion({
    ...(await forced(runtime, 'It rains.', { tools })),
    stream: false,
  });
  expect(plain.choices[0]!.message).toMatchObject({ content: 'It rains.', tool_calls: [] });
});

it('the prompt has the tools, and the calls of earlier turns in the same form', async () => {
  const call = { id: 'call_1', type: 'function' as const, function: CALL };
  const { prompt } = await runtime.renderPrompt({
    tools,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'The weather?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ],
  });
  for (const part of ['Be brief.', '"description":"The weather of a city"', `The weather?${TEXT}sunny`])
    expect(prompt.split(part).length - 1, part).toBe(1);
});

it('a caller who names the format of calls describes the tools himself', async () => {
  const asked = await forced(runtime, TEXT, { tools, model: 'silent' });
  const { choices } = await runtime.createCompletion({ ...asked, stream: false });
  expect(choices[0]!.message).toMatchObject({ content: TEXT, tool_calls: [] });
  const messages = [{ role: 'user' as const, content: 'The weather?' }];
  expect((await runtime.renderPrompt({ tools, messages, model: 'silent' })).prompt).toBe('The weather?');
});
