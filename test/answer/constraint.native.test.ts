import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { functionsOf } from '../fakes/calls.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

type Fields = Partial<ChatCompletionRequest>;
const QUESTION = 'Extract: Anna is 34 years old and lives in Rome.';

async function ask(fields: Fields): Promise<ChatCompletion> {
  const messages = [{ role: 'user' as const, content: QUESTION }];
  return await runtime.createCompletion({
    messages,
    temperature: 1.5,
    seed: 3,
    max_tokens: 200,
    ...fields,
    stream: false,
  });
}

const PERSON = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 120 } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const isPerson = new Ajv({ strict: false }).compile(PERSON);

const tool = (name: string, properties: object) => ({
  type: 'function' as const,
  function: {
    name,
    parameters: {
      type: 'object',
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    },
  },
});
const tools = [
  tool('get_weather', { city: { type: 'string', maxLength: 10 } }),
  tool('calculate', { n: { type: 'integer', minimum: 0, maximum: 99 } }),
];

describe('structured outputs', () => {
  it.each<[string, Fields, RegExp]>([
    ['choice', { structured_outputs: { choice: ['red', 'green', 'blue'] } }, /^(red|green|blue)$/],
    ['regex', { structured_outputs: { regex: '[0-9]{3}-[a-z]{2}' } }, /^[0-9]{3}-[a-z]{2}$/],
    ['grammar', { structured_outputs: { grammar: 'root ::= "yes" | "no " [0-9] [0-9]' } }, /^(yes|no \d\d)$/],
    [
      'with penalties, bias and top_p',
      { structured_outputs: { regex: '[ab]{8}' }, repetition_penalty: 1.5, top_p: 0.9, logit_bias: { 5: 2 } },
      /^[ab]{8}$/,
    ],
    [
      'with log-probabilities',
      { structured_outputs: { regex: '[0-9]{4}' }, logprobs: true, top_logprobs: 2 },
      /^\d{4}$/,
    ],
    [
      'with a hook',
      {
        structured_outputs: { regex: '[0-9]{4}' },
        logits_processors: [(_: Int32Array, row: Float32Array) => row.map((value) => value / 2)],
      },
      /^\d{4}$/,
    ],
  ])('%s: every choice fits and stops by itself', async (_, fields, expected) => {
    const { choices } = await ask({ n: 6, ...fields });
    for (const { message, finish_reason } of choices) {
      expect(message.content).toMatch(expected);
      expect(finish_reason).toBe('stop');
    }
    if (fields.logprobs) expect(choices[0]!.logprobs!.content.length).toBeGreaterThan(0);
  });

  it.each<[string, Fields]>([
    ['json', { structured_outputs: { json: PERSON } }],
    ['json as text', { structured_outputs: { json: JSON.stringify(PERSON) } }],
    [
      'response_format',
      { response_format: { type: 'json_schema', json_schema: { name: 'person', schema: PERSON } } },
    ],
  ])('%s: every document is valid', async (_, fields) => {
    const { choices } = await ask({ n: 8, ...fields });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('stop');
      expect(isPerson(JSON.parse(message.content!)), message.content!).toBe(true);
    }
  });

  it('json_object with a schema gives what fits it', async () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer' } },
      required: ['age'],
      additionalProperties: false,
    };
    const { choices } = await ask({ response_format: { type: 'json_object', schema }, temperature: 0 });
    expect(JSON.parse(choices[0]!.message.content!)).toMatchObject({ age: expect.any(Number) as number });
    const faulty = { type: 'json_object' as const, schema: { type: 'nothing' } };
    await expect(ask({ response_format: faulty })).rejects.toMatchObject({
      param: expect.stringMatching(/^response_format\.schema/) as string,
    });
  });

  it('json_object gives an object', async () => {
    const { choices } = await ask({ response_format: { type: 'json_object' }, temperature: 0 });
    expect(JSON.parse(choices[0]!.message.content!)).toBeTypeOf('object');
  });

  it('streams the same text, and runs beside free requests', async () => {
    const request = {
      messages: [{ role: 'user' as const, content: QUESTION }],
      temperature: 0,
      max_tokens: 100,
    };
    const structured_outputs = { json: PERSON };
    const alone = await runtime.createCompletion({ ...request, structured_outputs, stream: false });
    const free = await runtime.createCompletion({ ...request, stream: false });
    const [constrained, unconstrained] = await Promise.all([
      runtime.createCompletion({ ...request, structured_outputs, stream: true }),
      runtime.createCompletion({ ...request, stream: false }),
    ]);
    let text = '';
    for await (const chunk of constrained) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(alone.choices[0]!.message.content);
    expect(unconstrained.choices[0]!.message.content).toBe(free.choices[0]!.message.content);
  });

  it('begins after reasoning that the prompt has opened', async () => {
    const chat_template = '{% for m in messages %}{{ m.content }}{% endfor %}<think>';
    const [close] = [await runtime.tokenize('</think>')];
    const { choices } = await ask({
      chat_template,
      structured_outputs: { regex: '[0-9]{4}' },
      logits_processors: [
        (outputIds: Int32Array, row: Float32Array) => {
          const next = close![outputIds.length];
          if (next !== undefined) row.fill(-Infinity).fill(1, next, next + 1);
        },
      ],
    });
    expect(choices[0]!.message.content).toMatch(/^\d{4}$/);
  });

  it.each<[string, Fields, string]>([
    ['the end token is tried first', {}, 'stop'],
    ['cut by length', { max_tokens: 3 }, 'length'],
  ])('cannot end inside open reasoning: %s', async (_, fields, reason) => {
    const chat_template = '{% for m in messages %}{{ m.content }}{% endfor %}<think>';
    const [end] = await runtime.tokenize('<|im_end|>', { parseSpecial: true });
    const close = await runtime.tokenize('</think>');
    const processor = (outputIds: Int32Array, row: Float32Array): void => {
      const wanted = outputIds.length < 5 ? end! : close[outputIds.length - 5];
      if (wanted !== undefined && Number.isFinite(row[wanted])) row[wanted] = 1000;
    };
    const structured_outputs = { regex: '[0-9]{4}' };
    const { choices } = await ask({
      chat_template,
      structured_outputs,
      logits_processors: [processor],
      ...fields,
    });
    expect(choices[0]!.finish_reason).toBe(reason);
    if (reason === 'stop') expect(choices[0]!.message.content).toMatch(/^\d{4}$/);
    else expect(choices[0]!.message.content).toBeNull();
  });

  it('response_format text leaves structured_outputs alone, whatever else it holds', async () => {
    const json_schema = { name: 'x', schema: { type: 'object' } };
    for (const response_format of [{ type: 'text' as const }, { type: 'text' as const, json_schema }]) {
      const { choices } = await ask({ response_format, structured_outputs: { choice: ['red'] } });
      expect(choices[0]!.message.content).toBe('red');
    }
  });

  it('holds every beam of a search', async () => {
    const beams = { use_beam_search: true, temperature: 0, return_token_ids: true };
    const colours = ['red', 'green', 'dark blue'];
    const found = await ask({ n: 3, ...beams, structured_outputs: { choice: colours } });
    for (const { message, finish_reason } of found.choices) {
      expect(colours).toContain(message.content);
      expect(finish_reason).toBe('stop');
    }
    expect(new Set(found.choices.map(({ token_ids }) => token_ids!.join())).size).toBe(3); // other tokens, perhaps the same text
    const people = await ask({ n: 4, ...beams, structured_outputs: { json: PERSON } });
    for (const { message } of people.choices)
      expect(isPerson(JSON.parse(message.content!)), message.content!).toBe(true);
  });

  it('takes forced tokens without sampling, and counts them', async () => {
    // Digits have one spelling, so the number of sampled tokens is known. Drafts would save steps, too, as many as the clock decides.
    const structured_outputs = {
      regex: '[0-9]: The quick brown fox [0-9]{3} jumps over the lazy dog\\. [0-9]{2}',
    };
    const fields: Fields = {
      structured_outputs,
      n: 4,
      frequency_penalty: 0.5,
      speculation: false,
      return_token_ids: true,
    };
    const stepsOf = async (more: Fields): Promise<{ answer: ChatCompletion; steps: number }> => {
      const before = runtime.stats().steps;
      return { answer: await ask({ ...fields, ...more }), steps: runtime.stats().steps - before };
    };
    const lengths = ({ choices }: ChatCompletion): number[] =>
      choices.map(({ token_ids }) => token_ids!.length);
    const quick = await stepsOf({});
    expect(quick.steps).toBe(8); // six digits, and the blanks before digits
    const slow = await stepsOf({ logprobs: true });
    expect(slow.steps).toBe(Math.max(...lengths(slow.answer)));
    for (const { message, finish_reason, token_ids } of quick.answer.choices) {
      expect(message.content).toMatch(
        /^[0-9]: The quick brown fox [0-9]{3} jumps over the lazy dog\. [0-9]{2}$/,
      );
      expect(finish_reason).toBe('stop');
      expect(token_ids).toEqual([...(await runtime.tokenize(message.content!))]);
    }
    for (const { message, logprobs, token_ids } of slow.answer.choices) {
      expect(message.content).toHaveLength(quick.answer.choices[0]!.message.content!.length);
      expect(logprobs!.content.length).toBe(token_ids!.length);
    }
    const usage = lengths(quick.answer).reduce((total, length) => total + length, 0);
    expect(quick.answer.usage.completion_tokens).toBe(usage);
    const stopped = await ask({ ...fields, stop: ['lazy'] });
    for (const { message } of stopped.choices) expect(message.content).toMatch(/jumps over the $/);
    const cut = await ask({ ...fields, max_tokens: 3 });
    for (const { token_ids, finish_reason } of cut.choices) {
      expect(token_ids).toHaveLength(3);
      expect(finish_reason).toBe('length');
    }
  });

  it('names what is wrong, before anything runs', async () => {
    await expect(ask({ structured_outputs: { regex: '(a' } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('offset 0'),
    });
    await expect(ask({ structured_outputs: { json: { type: 'strin' } } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });
});

describe('forced tool calls', () => {
  it('required: one of the tools, with arguments that fit', async () => {
    const { choices } = await ask({ tools, tool_choice: 'required', n: 5 });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('tool_calls');
      expect(message.content).toBeNull();
      for (const call of functionsOf(message.tool_calls)) {
        const given = JSON.parse(call.arguments) as Record<string, unknown>;
        expect(Object.keys(given)).toEqual(call.name === 'calculate' ? ['n'] : ['city']);
      }
      expect(message.tool_calls.length).toBeGreaterThan(0);
    }
  });

  it('named: that tool, and an ordinary stop', async () => {
    const { choices } = await ask({
      tools,
      tool_choice: { type: 'function', function: { name: 'calculate' } },
      n: 5,
    });
    for (const { message, finish_reason } of choices) {
      expect(finish_reason).toBe('stop');
      expect(functionsOf(message.tool_calls).map(({ name }) => name)).toEqual(['calculate']);
    }
  });
});

describe('what the answer is not held to', () => {
  const schema = { type: 'string', format: 'colour', maxLength: 5 };
  const path = "#/format: unknown format 'colour' is not enforced";
  it.each<[string, Fields, string[] | undefined]>([
    [
      'is named by the path of the schema',
      { structured_outputs: { json: schema } },
      [`structured_outputs.json${path}`],
    ],
    [
      'is named by the path of response_format',
      { response_format: { type: 'json_schema', json_schema: { name: 'c', schema } } },
      [`response_format.json_schema.schema${path}`],
    ],
    [
      'is nothing where keywords only annotate',
      { structured_outputs: { json: { title: 'T', type: 'integer', maximum: 9 } } },
      undefined,
    ],
  ])('%s', async (_, fields, expected) => {
    expect((await ask(fields)).warnings).toEqual(expected);
    const messages = [{ role: 'user' as const, content: QUESTION }];
    const stream = await runtime.createCompletion({
      messages,
      max_tokens: 20,
      ...fields,
      n: 2,
      stream: true,
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks[0]!.warnings).toEqual(expected);
    expect(chunks.slice(1).filter(({ warnings }) => warnings)).toEqual([]);
  });
});
