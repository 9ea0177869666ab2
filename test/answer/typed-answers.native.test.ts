/** Schemas of zod and others in requests -> typed, validated answers: in process, isolated, over HTTP, streamed, in tools. */
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  type ChatCompletion,
  type ConnectedService,
  connect,
  createRuntime,
  OnpolicyError,
  type Runtime,
  type Server,
  type StandardSchema,
  schema,
  serve,
} from '../../src/index.ts';

const Person = z.object({ name: z.string(), age: z.number().int(), city: z.string() });
type Person = z.infer<typeof Person>;
const messages = [
  {
    role: 'user' as const,
    content: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
  },
];
const OMAR = { name: 'Omar', age: 26, city: 'Delhi' };
const request = { messages, response_format: schema(Person), temperature: 0 };

let runtime: Runtime;
let isolated: Runtime;
let server: Server;
let client: ConnectedService;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
  isolated = await createRuntime({ threads: 1, isolate: true });
  server = await serve(runtime, { port: 0 });
  client = connect({ baseUrl: `${server.url}/v1/` });
});
afterAll(async () => {
  await client.close();
  await server.close();
  await isolated.close();
  await runtime.close();
});

it('reads answers with the schema that made them', async () => {
  const answer = await runtime.createCompletion(request);
  expectTypeOf(answer.parsed).toEqualTypeOf<Person>();
  expect(answer.parsed).toEqual(OMAR);
  const copy = structuredClone({ ...answer.choices[0]!.message });
  expect(
    (await runtime.createCompletion({ messages: [...messages, copy, messages[0]!] })).choices,
  ).toHaveLength(1);
  for (const service of [isolated, client])
    expect((await service.createCompletion(request)).parsed).toEqual(OMAR);
});

it('reads the end of a stream, and each choice', async () => {
  const stream = await runtime.createCompletion({ ...request, stream: true });
  let text = '';
  for await (const piece of stream.text) text += piece;
  const whole = await stream.final();
  expectTypeOf(whole.parsed).toEqualTypeOf<Person>();
  expect([JSON.parse(text), whole.parsed]).toEqual([OMAR, OMAR]);
  const several = await runtime.createCompletion({ ...request, n: 2, temperature: 0.5, seed: 1 });
  for (const { parsed, message } of several.choices) expect(parsed).toEqual(JSON.parse(message.content!));
  expect(JSON.parse(JSON.stringify(several.choices[0]))).not.toHaveProperty('parsed');
});

it('takes what other libraries give, and a JSON Schema with a type', async () => {
  // arktype's schemas are functions; transforms make another type of the value
  const json = {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Lima'] } },
    required: ['city'],
    additionalProperties: false,
  };
  const upper: StandardSchema<string> = Object.assign(() => {}, {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: async (value: unknown) => ({ value: (value as { city: string }).city.toUpperCase() }),
      jsonSchema: { input: () => json },
    },
  });
  const shouted = await runtime.createCompletion({ messages, response_format: schema(upper) });
  expectTypeOf(shouted.parsed).toEqualTypeOf<string>();
  expect(shouted.parsed).toBe('LIMA');
  const plain = await runtime.createCompletion({ messages, response_format: schema<{ city: 'Lima' }>(json) });
  expectTypeOf(plain.parsed).toEqualTypeOf<{ city: 'Lima' }>();
  expect(plain.parsed).toEqual({ city: 'Lima' });
  const dated = z.object({ day: z.literal('2025-01-02').transform((day) => new Date(day)) });
  const { parsed } = await runtime.createCompletion({ messages, response_format: schema(dated) });
  expect(parsed.day.getTime()).toBe(Date.UTC(2025, 0, 2));
});

it('has no type and no value without a schema', async () => {
  const whole = await runtime.createCompletion({ messages, max_tokens: 1 });
  expectTypeOf(whole).toEqualTypeOf<ChatCompletion>();
  expect(whole).not.toHaveProperty('parsed');
  const tools = [{ type: 'function' as const, function: { name: 'f' } }];
  const typed = () => runtime.createCompletion({ ...request, tools });
  expectTypeOf<Awaited<ReturnType<typeof typed>>['parsed']>().toEqualTypeOf<Person | null>();
});

describe('an answer that does not fit', () => {
  it('is an error with its text', async () => {
    const cut = runtime.createCompletion({ ...request, max_tokens: 6 });
    await expect(cut).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      text: expect.stringMatching(/^\{"name/),
    });
    await expect(cut).rejects.toThrow(/the answer was cut: raise max_completion_tokens/);
    const stream = await runtime.createCompletion({ ...request, max_tokens: 6, stream: true });
    await expect(stream.final()).rejects.toMatchObject({ code: 'ANSWER_INVALID' });
    const young = Person.refine(({ age }) => age < 20, { path: ['age'], message: 'too old' });
    const error = await runtime
      .createCompletion({ ...request, response_format: schema(young) })
      .catch((thrown: unknown) => thrown as OnpolicyError);
    expect(error).toBeInstanceOf(OnpolicyError);
    expect((error as OnpolicyError).message).toBe('the answer does not fit its schema: age: too old');
    expect((error as OnpolicyError).detail).toEqual([{ loc: ['age'], msg: 'too old', type: 'value' }]);
    expect(JSON.parse((error as OnpolicyError).text!)).toEqual(OMAR);
  });
});

describe('schemas in the places of JSON Schemas', () => {
  it('count as their JSON Schemas', async () => {
    const format = { type: 'json_schema' as const, json_schema: { name: 'person', schema: Person } };
    const answer = await runtime.createCompletion({ messages, response_format: format, temperature: 0 });
    expect((answer as unknown as { parsed: unknown }).parsed).toEqual(OMAR);
    const outputs = await client.createCompletion({
      messages,
      structured_outputs: { json: Person },
      temperature: 0,
    });
    expect(JSON.parse(outputs.choices[0]!.message.content!)).toEqual(OMAR);
    const tools = [{ type: 'function' as const, function: { name: 'save', parameters: Person } }];
    for (const service of [runtime, isolated, client]) {
      const called = await service.createCompletion({ messages, tools, tool_choice: 'required', seed: 3 });
      const [call] = called.choices[0]!.message.tool_calls;
      expect(
        Person.safeParse(JSON.parse(call!.type === 'function' ? call!.function.arguments : '')),
      ).toMatchObject({
        success: true,
      });
    }
  });

  it.each([
    [
      'a class',
      { structured_outputs: { json: new Map() } },
      /^structured_outputs\.json: expected a JSON Schema as a plain object, or a schema with ~standard\.jsonSchema, got "an instance of Map"/,
    ],
    [
      'in a format',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: new Date() } } },
      /^response_format\.json_schema\.schema: expected a JSON Schema as a plain object/,
    ],
    [
      'in a tool',
      { tools: [{ type: 'function', function: { name: 'f', parameters: /a/ } }] },
      /^tools\.0\.function\.parameters: expected a JSON Schema as a plain object/,
    ],
    [
      'valibot without a converter',
      { structured_outputs: { json: { '~standard': { version: 1, vendor: 'valibot' } } } },
      /toStandardJsonSchema\(\.\.\.\) of '@valibot\/to-json-schema' makes one/,
    ],
    [
      'what JSON cannot say',
      { structured_outputs: { json: z.bigint() } },
      /^structured_outputs\.json: expected a schema that has a JSON Schema, got "BigInt/,
    ],
  ])('are refused: %s', async (_name, fields, message) => {
    for (const service of [runtime, client])
      await expect(service.createCompletion({ messages, ...fields } as never)).rejects.toThrow(message);
  });

  it('are refused by schema() too', () => {
    expect(() => schema(new Map() as never)).toThrow(/^schema: expected a JSON Schema as a plain object/);
    expect(() => schema(null as never)).toThrow(/^schema: expected/);
    expect(() => schema(z.bigint())).toThrow(/has a JSON Schema/);
  });
});

it('closes objects whose schema does not say, and no others', () => {
  const formOf = (given: z.ZodType) => schema(given).json_schema.schema as Record<string, object>;
  const nested = z.object({
    a: z.array(z.object({ b: z.string() })),
    c: z.union([z.object({ d: z.null() }), z.string()]),
  });
  const shown = JSON.stringify(formOf(nested));
  expect(shown.match(/"additionalProperties":false/g)).toHaveLength(3);
  expect(formOf(z.looseObject({ a: z.string() }))['additionalProperties']).toEqual({});
  expect(formOf(z.record(z.string(), z.number()))['additionalProperties']).toEqual({ type: 'number' });
  const part = { type: 'object', properties: { a: { type: 'string' } } };
  const whole = { allOf: [part, { ...part, properties: { b: { type: 'string' } } }] };
  const { validate } = z.unknown()['~standard'];
  const combined = {
    '~standard': { version: 1 as const, vendor: 'test', validate, jsonSchema: { input: () => whole } },
  };
  expect(schema(combined as StandardSchema).json_schema.schema).toEqual(whole);
});
