import { describe, expect, it } from 'vitest';
import { checkStructuredOutputs, toNativeSpec } from '../../src/structured/validate.ts';

describe('checkStructuredOutputs', () => {
  it.each([
    [{ json: { type: 'null' } }, { kind: 0, text: '{"type":"null"}' }],
    [{ json_object: true }, { kind: 0, text: '{"type":"object"}' }],
    [
      { json: '{}', json_object: false, regex: null },
      { kind: 0, text: '{}' },
    ],
    [{ regex: '' }, { kind: 1, text: '' }],
    [
      { choice: ['a'], disable_any_whitespace: true },
      { kind: 2, choices: ['a'], anyWhitespace: false },
    ],
    [
      { grammar: 'root ::= "a"', disable_fallback: true },
      { kind: 3, refuseUnknown: true },
    ],
    [{ json: {}, whitespace_pattern: ' ?' }, { whitespacePattern: ' ?' }],
    [{ json: {} }, { anyOrder: false, schemaUris: [], schemas: [] }],
    [{ json: {}, property_order: 'declared' as const }, { anyOrder: false }],
    [{ json: {}, property_order: 'any' as const }, { anyOrder: true }],
    [
      { json: {}, schemas: { 'https://a.example/b#': { type: 'null' }, 'https://a.example/c': true } },
      {
        schemaUris: ['https://a.example/b', 'https://a.example/c'],
        schemas: ['{"type":"null"}', 'true'],
      },
    ],
  ])('reads %j', (spec, expected) => {
    checkStructuredOutputs(spec);
    expect(toNativeSpec(spec)).toMatchObject(expected);
  });

  it.each([
    [{}, /exactly one of/],
    [{ json: {}, regex: 'a' }, /json and regex/],
    [{ json_object: false }, /exactly one of/],
    [{ choice: [] }, /choice: expected a non-empty list/],
    [{ grammar: '  ' }, /grammar: expected a text that is not blank/],
    [{ json: '' }, /json: expected a text that is not blank/],
    [{ regex: 'a', typo: 1 }, /typo: not a field of structured_outputs/],
    [{ regex: 'a', _backend: 'xgrammar' }, /_backend/],
    [{ regex: 'a', disable_fallback: 'yes' }, /disable_fallback: expected true or false/],
    [{ json: {}, property_order: 'sorted' }, /property_order: expected "declared", "any" or null/],
    [{ json: {}, schemas: [] }, /schemas: expected an object or null/],
    [
      { json: {}, schemas: { 'https://a.example': 1 } },
      /schemas.https:\/\/a.example: expected an object or true or false/,
    ],
  ])('refuses %j', (spec, message) => {
    expect(() => checkStructuredOutputs(spec as never)).toThrow(message);
  });
});

it('a schema is stringified once', () => {
  let count = 0;
  const counted = (schema: Record<string, unknown>) =>
    Object.defineProperty(schema, 'toJSON', { value: () => ({ count: ++count }) });
  const json = counted({ type: 'object' });
  const { text, schemas } = toNativeSpec({
    json,
    schemas: { 'https://a.test/b': counted({ type: 'string' }) },
  });
  expect([...schemas, text]).toEqual(['{"count":1}', '{"count":2}']);
  expect(count).toBe(2);
});
