/** Any value -> the errors of its schema; the oracle is ajv. */
import { Ajv, type ErrorObject, _ as text } from 'ajv';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type CheckedName,
  MOST_ERRORS,
  type SchemaError,
  schemaErrors,
} from '../../src/protocol/schema-check.ts';
import { argumentDefinitions, definitions } from '../../src/protocol/schemas/index.ts';
import type { Schema } from '../../src/protocol/schemas/schema.ts';
import { countOf } from '../counts.ts';

const all = { ...definitions, ...argumentDefinitions };
const names = Object.keys(all) as CheckedName[];

const ajv = new Ajv({
  allErrors: true,
  verbose: true,
  messages: false,
  strictTypes: false,
  strictRequired: false,
  logger: false,
});
for (const name of ['bounds', 'expected', 'keepsNull', 'secret', 'tsType']) ajv.addKeyword(name);
ajv.addKeyword({
  keyword: 'kind',
  schemaType: 'string',
  code: (cxt) =>
    cxt.fail(
      cxt.schema === 'function'
        ? text`typeof ${cxt.data} !== 'function'`
        : text`Object.prototype.toString.call(${cxt.data}) !== ${`[object ${cxt.schema}]`}`,
    ),
});
ajv.addSchema({ $id: 'onpolicy', $defs: all });

/** An error in the same words, of ajv and of ours. */
const line = (keyword: string, path: readonly string[], field: string | null): string =>
  [keyword, path.join('/'), field ?? ''].join(' ');

function expected(name: CheckedName, value: unknown): string[] {
  const validate = ajv.getSchema(`onpolicy#/$defs/${name}`)!;
  validate(value);
  return (validate.errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map(({ keyword, instancePath, params }: ErrorObject) =>
      line(
        keyword,
        instancePath
          .split('/')
          .slice(1)
          .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')),
        (params['missingProperty'] ?? params['additionalProperty'] ?? null) as string | null,
      ),
    );
}

function found(name: CheckedName, value: unknown): string[] {
  return schemaErrors(name, value).map(({ keyword, path, field }: SchemaError) => line(keyword, path, field));
}

/** Values that fit a schema, and some that almost do. */
function near(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if (schema.$ref) return near(all[schema.$ref.slice('#/$defs/'.length)]!, depth);
  const branches = [schema.then, schema.else].filter((one) => one !== undefined);
  const types = [schema.type ?? (schema.properties || branches.length > 0 ? 'object' : [])].flat();
  return fc.oneof(
    {
      weight: 1,
      arbitrary: fc.constantFrom<unknown>(
        null,
        undefined,
        true,
        '',
        'a',
        -1,
        0,
        1.5,
        2 ** 60,
        [],
        {},
        NaN,
        () => 0,
        new Float32Array(1),
      ),
    },
    ...(schema.const === undefined ? [] : [{ weight: 4, arbitrary: fc.constant<unknown>(schema.const) }]),
    ...(schema.enum ? [{ weight: 4, arbitrary: fc.constantFrom<unknown>(...schema.enum) }] : []),
    ...branches.map((branch) => ({ weight: 3, arbitrary: later(() => near(branch, depth)) })),
    ...(types.includes('object') ? [{ weight: 4, arbitrary: objectNear(schema, depth) }] : []),
    ...(types.includes('array') && depth < 4
      ? [
          {
            weight: 4,
            arbitrary: fc.array(
              later(() => near(schema.items ?? {}, depth + 1)),
              { maxLength: 3 },
            ),
          },
        ]
      : []),
  );
}

/** Arbitraries of a whole schema are made only when they are drawn from. */
function later(make: () => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.constant(null).chain(make);
}

function objectNear(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (depth > 4) return fc.constant({});
  const known = { ...schema.if?.properties, ...schema.then?.properties, ...schema.properties };
  return fc
    .subarray(Object.keys(known), { maxLength: Math.min(5, Object.keys(known).length) })
    .chain((some) => {
      const chosen = [...new Set([...some, ...(schema.required ?? [])])];
      const fields = chosen.map((name) => [name, near(known[name] ?? {}, depth + 1)] as const);
      return fc.record(
        { ...Object.fromEntries(fields), 'an/~other': near({ type: 'object' }, depth + 4) },
        { requiredKeys: [] },
      );
    });
}

it('are those of ajv', { timeout: 300_000 }, () => {
  const cases = fc
    .constantFrom(...names)
    .chain((name) =>
      fc.tuple(
        fc.constant(name),
        fc.oneof({ weight: 9, arbitrary: later(() => near(all[name]!)) }, fc.anything()),
      ),
    );
  fc.assert(
    fc.property(cases, ([name, value]) => {
      expect(found(name, value)).toEqual(expected(name, value));
    }),
    { numRuns: countOf('ONPOLICY_SCHEMA_DRAWS', 8_000) },
  );
});

it('say the value and its own schema', () => {
  const [error] = schemaErrors('ChatCompletionRequest', { messages: [], temperature: 'hot' }).filter(
    ({ path }) => path.join() === 'temperature',
  );
  expect(error).toMatchObject({ keyword: 'type', value: 'hot', schema: { minimum: 0 } });
});

it('end at a limit', () => {
  const messages = Array.from({ length: MOST_ERRORS + 10 }, () => 0);
  expect(schemaErrors('ChatCompletionRequest', { messages }).length).toBe(MOST_ERRORS);
});
