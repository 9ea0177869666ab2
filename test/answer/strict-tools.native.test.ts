/** Calls that the model makes by itself: constrained from where they begin, when a tool is strict. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LogitsProcessor, Tool } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { functionsOf } from '../fakes/calls.ts';
import { chunksOf, type Fields, PLAIN } from './fields/model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

const tool = (name: string, strict: boolean): Tool => ({
  type: 'function',
  function: {
    name,
    strict,
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 8 },
        days: { type: 'integer', minimum: 1, maximum: 9 },
      },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
});

/** Makes the model begin its answer with `text`; what follows is its own. */
async function opening(text: string): Promise<LogitsProcessor> {
  const ids = await runtime.tokenize(text);
  return (outputIds: Int32Array, logits: Float32Array) => {
    const next = ids[outputIds.length];
    if (next === undefined) return;
    const kept = logits[next]!;
    logits.fill(Number.NEGATIVE_INFINITY)[next] = kept;
  };
}

async function request(template: string, begin: string, fields: Fields = {}) {
  return {
    messages: [{ role: 'user' as const, content: 'The weather in Rome, please.' }],
    chat_template: `${PLAIN}{% if false %}${template}{% endif %}`,
    tools: [tool('weather', true)],
    parallel_tool_calls: false,
    logits_processors: [await opening(begin)],
    temperature: 1.5,
    seed: 5,
    n: 4,
    max_tokens: 400,
    ...fields,
  };
}

function isFitting(text: string): boolean {
  const { city, days, ...others } = JSON.parse(text) as Record<string, unknown>;
  const isDays = Number.isInteger(days) && Number(days) >= 1 && Number(days) <= 9;
  return typeof city === 'string' && city.length <= 8 && isDays && Object.keys(others).length === 0;
}

const HERMES = '<tool_call>{"name": "x", "arguments": {}}</tool_call>';

describe.each([
  ['hermes', HERMES, '<tool_call>'],
  ['qwen3_coder', '<tool_call><function=x><parameter=y>', '<tool_call>'],
  ['glm45', '<tool_call>x<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>', '<tool_call>'],
  ['functionary_v31', '<function=x>{}</function>', '<function='],
  ['mistral_args', '[TOOL_CALLS]x[ARGS]{}', '[TOOL_CALLS]'],
])('%s', (_, template, trigger) => {
  it('a call fits its schema, and nothing follows the only one', async () => {
    const { choices } = await runtime.createCompletion({
      ...(await request(template, `Let me see.\n${trigger}`)),
      stream: false,
    });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('tool_calls');
      expect(message.content).toContain('Let me see.');
      expect(functionsOf(message.tool_calls).map(({ name }) => name)).toEqual(['weather']);
      expect(isFitting(functionsOf(message.tool_calls)[0]!.arguments), JSON.stringify(message)).toBe(true);
    }
  });
});

describe('hermes', () => {
  it('streams the same calls', async () => {
    const asked = await request(HERMES, '<tool_call>', { n: 1 });
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    const calls = (await chunksOf(runtime, asked)).flatMap(
      (chunk) => chunk.choices[0]?.delta.tool_calls ?? [],
    );
    const text = calls.map((call) => call.function?.arguments ?? '').join('');
    expect(text).toBe(functionsOf(choices[0]!.message.tool_calls)[0]!.arguments);
    expect(isFitting(text)).toBe(true);
  });

  it('takes several calls, where they are allowed', async () => {
    const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 1}}\n</tool_call>';
    const asked = await request(HERMES, `${call}\n<tool_call>`, { parallel_tool_calls: true });
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    for (const { message } of choices) {
      expect(message.tool_calls.length).toBeGreaterThan(1);
      for (const made of functionsOf(message.tool_calls)) expect(isFitting(made.arguments)).toBe(true);
    }
  });

  it('leaves calls alone that stand in reasoning, which may come first', async () => {
    const template = `${HERMES}<think></think>`;
    const begin = '<think>perhaps <tool_call> of something?</think>Yes. <tool_call>';
    const { choices } = await runtime.createCompletion({
      ...(await request(template, begin)),
      stream: false,
    });
    for (const { message } of choices) {
      expect(message.reasoning).toBe('perhaps <tool_call> of something?');
      expect(isFitting(functionsOf(message.tool_calls)[0]!.arguments)).toBe(true);
    }
  });

  it('begins after reasoning that the prompt has opened', async () => {
    const asked = await request(HERMES, 'why</think><tool_call>', {
      chat_template: `${PLAIN}{% if false %}${HERMES}{% endif %}<think>`,
    });
    const { choices } = await runtime.createCompletion({ ...asked, stream: false });
    for (const { message } of choices) {
      expect(message.reasoning).toBe('why');
      expect(isFitting(functionsOf(message.tool_calls)[0]!.arguments)).toBe(true);
    }
  });

  it('lets the model answer without a call', async () => {
    const asked = await request(HERMES, 'No call. ', { max_tokens: 20 });
    for (const { message } of (await runtime.createCompletion({ ...asked, stream: false })).choices) {
      expect(message.content).toMatch(/^No call\. /);
      expect(message.tool_calls).toEqual([]);
    }
  });

  it('holds no one to anything where no tool is strict, and a tool that is not strict to an object', async () => {
    const loose = { name: 'weather', arguments: { town: 'Rome' } };
    const text = `<tool_call>\n${JSON.stringify(loose).replaceAll('":', '": ').replace(',"a', ', "a')}\n</tool_call>`;
    const weather = tool('weather', false);
    for (const tools of [[weather], [weather, tool('other', true)]]) {
      const asked = await request(HERMES, text, { tools, n: 1 });
      const { choices } = await runtime.createCompletion({ ...asked, stream: false });
      expect(JSON.parse(functionsOf(choices[0]!.message.tool_calls)[0]!.arguments)).toEqual({ town: 'Rome' });
    }
    const strict = await request(HERMES, text, { n: 1 });
    await expect(runtime.createCompletion({ ...strict, stream: false })).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });
});
