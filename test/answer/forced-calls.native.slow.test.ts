/** Forced calls in every format: the model writes them in its own form, reads them back, and their arguments follow the schema. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { TOOL_FORMATS, type ToolFormat } from '../../src/template/tool-calls/index.ts';
import { EXACT_MODEL, PLAIN } from './fields/model.ts';

const formats = TOOL_FORMATS.filter((format) => format !== 'none');

let runtime: Runtime;
beforeAll(async () => {
  const model = { path: EXACT_MODEL, chatTemplate: PLAIN, contextSize: 1024, threads: 1 };
  /** Templates whose answers have channels or recipients: the framing is read by the parser of reasoning, too, so that its budget holds. */
  const shown = (marks: string): string => `${PLAIN}{# #}{% if false %}${marks}{% endif %}`;
  const framed: Partial<Record<ToolFormat, string>> = {
    harmony: shown('<|channel|><|message|>'),
    muse_glimmer: shown('to=self<|message|><atem:function_calls><|eom|>'),
  };
  runtime = await createRuntime({
    model,
    models: Object.fromEntries(
      formats.map((toolFormat) => [
        toolFormat,
        { ...model, toolFormat, chatTemplate: framed[toolFormat] ?? PLAIN },
      ]),
    ),
  });
});
afterAll(() => runtime.close());

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: {
        type: 'object',
        properties: {
          city: { enum: ['Rome', 'L\'Aquila "1"'] },
          days: { type: 'integer', minimum: 1, maximum: 9 },
          exact: { type: 'boolean' },
          tags: { type: 'array', items: { enum: ['a', 'b'] }, maxItems: 2 },
        },
        required: ['city', 'days', 'exact', 'tags'],
        additionalProperties: false,
      },
    },
  },
];

async function forcedCalls(model: ToolFormat, tool_choice: 'required' | 'named', seed: number) {
  const { choices } = await runtime.createCompletion({
    model,
    messages: [{ role: 'user', content: 'The weather in Rome?' }],
    tools,
    tool_choice:
      tool_choice === 'named' ? { type: 'function', function: { name: 'get_weather' } } : 'required',
    parallel_tool_calls: false,
    temperature: 1,
    seed,
    max_tokens: 600,
    thinking_token_budget: 20,
    stream: false,
  });
  return choices[0]!;
}

describe.each(formats)('%s', (format) => {
  it.each(['required', 'named'] as const)('%s', async (choice) => {
    for (const seed of [1, 2, 3]) {
      const { message, finish_reason } = await forcedCalls(format, choice, seed);
      const [call, ...more] = message.tool_calls;
      expect([finish_reason, more.length, message.content]).toEqual([
        choice === 'named' ? 'stop' : 'tool_calls',
        0,
        null,
      ]);
      if (call?.type !== 'function') throw new Error('expected a call');
      expect(call.function.name).toBe('get_weather');
      const { city, days, exact, tags, ...rest } = JSON.parse(call.function.arguments);
      expect(['Rome', 'L\'Aquila "1"']).toContain(city);
      expect(days).toBeOneOf([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(exact).toBeTypeOf('boolean');
      expect(tags.every((tag: string) => tag === 'a' || tag === 'b')).toBe(true);
      expect(rest).toEqual({});
    }
  });
});
