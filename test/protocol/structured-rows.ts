/** The fields about structure: formats of the answer and what it is held to. */
import type { Row } from './field-row.ts';

const tagged = { begin: '<a>', schema: { type: 'object' }, end: '</a>' };
const nothing = {
  json: null,
  regex: null,
  choice: null,
  grammar: null,
  json_object: null,
  structural_tag: null,
  disable_fallback: false,
  disable_any_whitespace: false,
  disable_additional_properties: false,
  whitespace_pattern: null,
  property_order: null,
  schemas: null,
};

/** By field. */
export const STRUCTURED_ROWS: Record<string, Row> = {
  response_format: {
    as: 'structured_outputs',
    absent: null,
    good: [
      [null, null],
      [{ type: 'text' }, null],
      [{ type: 'json_object' }, { ...nothing, json_object: true }],
      [
        { type: 'json_object', schema: null },
        { ...nothing, json_object: true },
      ],
      [
        { type: 'json_object', schema: { type: 'object' } },
        { ...nothing, json: { type: 'object' } },
      ],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' }, strict: true } },
        { ...nothing, json: { type: 'object' } },
      ],
      [{ type: 'json_schema', json_schema: { name: 'x' } }, null],
      [
        { type: 'structural_tag', format: { type: 'any_text' } },
        { ...nothing, structural_tag: '{"type":"structural_tag","format":{"type":"any_text"}}' },
      ],
      [
        { type: 'structural_tag', structures: [tagged], triggers: ['<a'] },
        {
          ...nothing,
          structural_tag: JSON.stringify({ type: 'structural_tag', structures: [tagged], triggers: ['<a'] }),
        },
      ],
    ],
    bad: [
      ['json_object', ': expected an object or null, got "json_object"'],
      [{}, '.type: this field is required, got nothing'],
      [
        { type: 'json' },
        '.type: expected "text", "json_object", "json_schema" or "structural_tag", got "json"',
      ],
      [{ type: 'json_object', schema: 'object' }, '.schema: expected an object or null, got "object"'],
      [{ type: 'json_schema' }, '.json_schema: this field is required, got nothing'],
      [{ type: 'json_schema', json_schema: {} }, '.json_schema.name: this field is required, got nothing'],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: 'object' } },
        '.json_schema.schema: expected an object or null, got "object"',
      ],
      [
        { type: 'json_schema', json_schema: { name: 'x', schema: { a: undefined, b: Symbol.iterator } } },
        '.json_schema.schema.b: expected JSON data, got a symbol',
      ],
      [{ type: 'structural_tag' }, ': expected either format, or structures with triggers, got an object'],
      [
        { type: 'structural_tag', structures: [{ begin: '<a>' }], triggers: ['<a'] },
        '.structures.0.end: this field is required, got nothing',
      ],
    ],
  },
  structured_outputs: {
    absent: null,
    good: [
      [null, null],
      [{}, null],
      [{ disable_any_whitespace: true }, null],
      [{ json_object: false }, null],
      [{ json: '{"type":"object"}' }, { ...nothing, json: '{"type":"object"}' }],
      [
        { json: { type: 'object' }, disable_additional_properties: true, whitespace_pattern: '[ ]?' },
        {
          ...nothing,
          json: { type: 'object' },
          disable_additional_properties: true,
          whitespace_pattern: '[ ]?',
        },
      ],
      [
        { regex: 'a+', json: null, _backend: 'onpolicy' },
        { ...nothing, regex: 'a+' },
      ],
      [
        { choice: ['a', 'b'], disable_fallback: true },
        { ...nothing, choice: ['a', 'b'], disable_fallback: true },
      ],
      [
        { json: { $ref: 'b:c' }, property_order: 'any', schemas: { 'b:c': { type: 'null' }, d: true } },
        {
          ...nothing,
          json: { $ref: 'b:c' },
          property_order: 'any',
          schemas: { 'b:c': { type: 'null' }, d: true },
        },
      ],
      [{ grammar: 'root ::= "a"' }, { ...nothing, grammar: 'root ::= "a"' }],
      [
        { json_object: true, disable_any_whitespace: true },
        { ...nothing, json_object: true, disable_any_whitespace: true },
      ],
      [{ structural_tag: '{"format":{}}' }, { ...nothing, structural_tag: '{"format":{}}' }],
    ],
    bad: [
      [{ json: '{' }, '.json: expected JSON text of an object or boolean, got "{"'],
      [{ json: '' }, '.json: expected JSON text of an object or boolean, got ""'],
      [{ json: '[]' }, '.json: expected JSON text of an object or boolean, got "[]"'],
      [{ json: { a: Number.NaN } }, '.json.a: expected a finite number, got NaN'],
      [{ regex: 'a\0' }, '.regex: expected a regular expression without NUL characters, got "a\\u0000"'],
      [{ choice: [] }, '.choice: expected a non-empty list or null, got an empty list'],
      [{ choice: [1] }, '.choice.0: expected a string, got 1'],
      [{ grammar: ' \n' }, '.grammar: expected a grammar that is not blank, got " \\n"'],
      [{ structural_tag: '7' }, '.structural_tag: expected JSON text of an object, got "7"'],
      [{ json_object: 'yes' }, '.json_object: expected true or false or null, got "yes"'],
      [{ disable_fallback: null }, '.disable_fallback: expected true or false, got null'],
      [{ property_order: 'sorted' }, '.property_order: expected "declared", "any" or null, got "sorted"'],
      [{ schemas: { a: 1 } }, '.schemas.a: expected an object or true or false, got 1'],
      [{ _backend: 'xgrammar' }, '._backend: expected "onpolicy" or null, got "xgrammar"'],
      [{ regexp: 'a' }, '.regexp: not a field of structured_outputs; did you mean regex?'],
    ],
  },
};
