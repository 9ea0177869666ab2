/** Rows with a schema on the embedded model -> typed values, in one run and in a resumed one; answers that were cut; types of rows. */
import path from 'node:path';
import { afterAll, beforeAll, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import {
  type BatchLine,
  type BatchRow,
  type ChatCompletion,
  createRuntime,
  type EmbeddingResponse,
  type Runtime,
  schema,
} from '../../../src/index.ts';
import { newFolder, readRows } from './fake-rows.ts';

const Person = z.object({ name: z.string(), age: z.int(), city: z.string() });
const TEXTS = ['Omar is 26 years old and lives in Delhi.', 'Nina is 31 years old and lives in Paris.'].map(
  (text, i) => ({ id: `row ${i}`, text }),
);
const PEOPLE = [
  { name: 'Omar', age: 26, city: 'Delhi' },
  { name: 'Nina', age: 31, city: 'Paris' },
];

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

const extract = (given: { output?: string; max_tokens?: number } = {}) => {
  const { max_tokens = null, ...options } = given;
  return runtime.batch(TEXTS, {
    ...options,
    order: 'input',
    resume: options.output !== undefined,
    results: 'all',
    response_format: schema(Person),
    toRequest: ({ id, text }) => ({
      custom_id: id,
      body: {
        messages: [{ role: 'user', content: `Extract the name, age and city as JSON: ${text}` }],
        temperature: 0,
        max_tokens,
      },
    }),
  });
};

it('reads the answers with the schema, also those of an earlier run', async () => {
  const output = path.join(newFolder(), 'out.jsonl');
  for (let run = 0; run < 2; run++) {
    const people: (z.infer<typeof Person> | null)[] = [];
    for await (const { parsed, response } of extract({ output })) {
      people.push(parsed);
      expectTypeOf(response!.body).toEqualTypeOf<ChatCompletion>();
      expect(JSON.parse(response!.body.choices[0]!.message.content!)).toEqual(parsed);
    }
    expect(people).toEqual(PEOPLE);
  }
  for (const row of readRows(output)) {
    expect(row).not.toHaveProperty('parsed');
    expect(row.response!.body).not.toHaveProperty('parsed');
  }
});

it('yields only the new rows of a resumed run, unless all are asked for', async () => {
  const output = path.join(newFolder(), 'out.jsonl');
  const options = {
    output,
    resume: true,
    toRequest: ({ text }: { text: string }) => ({
      messages: [{ role: 'user' as const, content: text }],
      max_tokens: 3,
    }),
  };
  const idsOf = async (rows: AsyncIterable<BatchRow>) => {
    const ids: (string | null)[] = [];
    for await (const { custom_id } of rows) ids.push(custom_id);
    return ids.sort();
  };
  const first = runtime.batch(TEXTS.slice(0, 1), { ...options, order: 'input' });
  expect(await idsOf(first)).toEqual(['row-1']);
  const more = { ...options, order: 'input' as const };
  expect(await idsOf(runtime.batch(TEXTS, more))).toEqual(['row-2']);
  expect(await idsOf(runtime.batch(TEXTS, more))).toEqual([]);
  expect(await idsOf(runtime.batch(TEXTS, { ...more, results: 'all' }))).toEqual(['row-1', 'row-2']);
});

it('counts answers that were cut, in this run and earlier ones', async () => {
  const output = path.join(newFolder(), 'out.jsonl');
  const toRequest = ({ id, text }: (typeof TEXTS)[number]) => ({
    custom_id: id,
    body: {
      messages: [{ role: 'user' as const, content: text }],
      max_tokens: id === 'row 1' ? 1 : 60,
      temperature: 0,
    },
  });
  const options = { output, resume: true, toRequest };
  expect(await runtime.batch(TEXTS, options).done).toMatchObject({ completed: 2, cut: 1, cutIds: ['row 1'] });
  expect(await runtime.batch(TEXTS, options).done).toMatchObject({ completed: 2, cut: 1, cutIds: [] });
});

it('counts an answer that its schema cannot read as failed, with its text', async () => {
  const rows: BatchRow[] = [];
  for await (const row of extract({ max_tokens: 5 })) rows.push(row);
  expect(rows).toHaveLength(2);
  for (const { response, ...row } of rows) {
    expect(response).toMatchObject({
      status_code: 422,
      body: { error: { code: 'ANSWER_INVALID', text: expect.stringMatching(/^\{/) } },
    });
    expect((row as { parsed?: unknown }).parsed).toBeUndefined(); // a copy has none
  }
  expect((rows[0] as { parsed?: unknown }).parsed).toBeNull();
});

it('names the closest field of a request that is misspelt', async () => {
  const messages = [{ role: 'user', content: 'a' }];
  const errors: (string | undefined)[] = [];
  const rows = [{ body: { mesages: messages } }, { promt: 'a' }, { body: { inputs: 'a' } }];
  for await (const { error } of runtime.batch(rows, { order: 'input' })) errors.push(error?.message);
  expect(errors[0]).toBe('line 1: body.mesages: not a field of a request; did you mean messages?');
  expect(errors[1]).toBe('line 2: promt: not a field of a request; did you mean prompt?');
  expect(errors[2]).toMatch(/^line 3: url: expected one of/);
});

it('types what rows are and become', () => {
  const options = () => {
    runtime.batch(TEXTS, {
      toRequest: (row) => {
        expectTypeOf(row).toEqualTypeOf<{ id: string; text: string }>();
        return { messages: [{ role: 'user', content: row.text }] };
      },
    });
    // @ts-expect-error: a misspelt field that a request needs
    runtime.batch(TEXTS, { toRequest: () => ({ body: { mesages: [] } }) });
    // @ts-expect-error: a field with a value of another type
    runtime.batch(TEXTS, { toRequest: () => ({ body: { messages: [], temperature: '0' } }) });
    // @ts-expect-error: TypeScript finds further fields in results of functions only where `satisfies` names the type
    runtime.batch(TEXTS, { toRequest: () => ({ messages: [], temprature: 0 }) satisfies BatchLine });
    // @ts-expect-error: no field of a row
    runtime.batch(TEXTS, { toRequest: ({ txt }) => ({ messages: [{ role: 'user', content: txt }] }) });
    const vectors = runtime.batch(TEXTS, {
      url: '/v1/embeddings',
      toRequest: ({ text }) => ({ body: { input: text } }),
    });
    return vectors;
  };
  type Row = ReturnType<typeof options> extends AsyncIterable<infer Each> ? Each : never;
  expectTypeOf<NonNullable<Row['response']>['body']>().toEqualTypeOf<EmbeddingResponse>();
});
