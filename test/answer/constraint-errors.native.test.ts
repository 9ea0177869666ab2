/** Errors of constraints name the caller's path, in process and through a client of the handler. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../src/errors.ts';
import type { Service } from '../../src/protocol/service/service.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect } from '../../src/serve/http/client/connect.ts';
import { createHandler } from '../../src/serve/http/server/handler.ts';

let runtime: Runtime;
let client: Service;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
  const handler = createHandler(runtime);
  const fetch = (async (url: string, init: RequestInit) => await handler(new Request(url, init))) as never;
  client = connect({ baseUrl: 'http://127.0.0.1', fetch });
});
afterAll(() => runtime.close());

const tool = (name: string, parameters: object) => ({
  type: 'function',
  function: { name, parameters, strict: true },
});
const bad = { type: 'objekt' };
const named = {
  type: 'json_schema',
  json_schema: { name: 'x', schema: { properties: { a: { pattern: 'x(' } } } },
};
const HERMES = '{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}<tool_call>{% endif %}';

/** Fields, the path, the offset, the value there, and words of the message. */
const ROWS: [string, object, string, number | undefined, unknown, string][] = [
  [
    'a regex',
    { structured_outputs: { regex: '(' } },
    'structured_outputs.regex',
    0,
    '(',
    'offset 0: unclosed group',
  ],
  [
    'an offset behind other characters',
    { structured_outputs: { regex: '🌦️ä(' } },
    'structured_outputs.regex',
    4,
    '🌦️ä(',
    '',
  ],
  [
    'a schema',
    { structured_outputs: { json: { type: 'strin' } } },
    'structured_outputs.json#/type',
    undefined,
    'strin',
    '',
  ],
  [
    'a schema as text',
    { structured_outputs: { json: '{"items": {"type": 5}}' } },
    'structured_outputs.json#/items/type',
    undefined,
    5,
    '',
  ],
  [
    'no value',
    { structured_outputs: { json: { allOf: [{ type: 'null' }, { type: 'string' }] } } },
    'structured_outputs.json',
    undefined,
    { allOf: [{ type: 'null' }, { type: 'string' }] },
    'no value',
  ],
  [
    'a grammar',
    { structured_outputs: { grammar: 'root ::= "a"\nb ::= (' } },
    'structured_outputs.grammar',
    19,
    'root ::= "a"\nb ::= (',
    'line 2',
  ],
  [
    'white space',
    { structured_outputs: { json: {}, whitespace_pattern: 'x(' } },
    'structured_outputs.whitespace_pattern',
    1,
    'x(',
    '',
  ],
  [
    'a structural tag',
    { structured_outputs: { structural_tag: '{"format": {"type": "regex", "pattern": "("}}' } },
    'structured_outputs.structural_tag#/format/pattern',
    0,
    '(',
    '',
  ],
  [
    'response_format',
    { response_format: named },
    'response_format.json_schema.schema#/properties/a/pattern',
    1,
    'x(',
    '',
  ],
  [
    'a structural tag of response_format',
    { response_format: { type: 'structural_tag', format: { type: 'regex', pattern: '(' } } },
    'response_format#/format/pattern',
    0,
    '(',
    '',
  ],
  [
    'a forced tool',
    { tools: [tool('a', bad)], tool_choice: 'required' },
    'tools.0.function.parameters#/type',
    undefined,
    'objekt',
    '',
  ],
  [
    'the second of two tools',
    { tools: [tool('a', {}), tool('b', { items: bad })], tool_choice: 'required' },
    'tools.1.function.parameters#/items/type',
    undefined,
    'objekt',
    '',
  ],
  [
    'a named tool',
    { tools: [tool('a', {}), tool('b', bad)], tool_choice: { type: 'function', function: { name: 'b' } } },
    'tools.1.function.parameters#/type',
    undefined,
    'objekt',
    '',
  ],
  [
    'a strict tool',
    { chat_template: HERMES, tools: [tool('a', bad)] },
    'tools.0.function.parameters#/type',
    undefined,
    'objekt',
    '',
  ],
];

describe.each<[string, () => Service]>([
  ['in process', () => runtime],
  ['through a client of the handler', () => client],
])('%s', (_, service) => {
  it.each(ROWS)('%s', async (_, fields, param, offset, input, words) => {
    const request = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4, ...fields };
    const error = (await service()
      .createCompletion(request as never)
      .then(
        () => null,
        (failed: unknown) => failed,
      )) as OnpolicyError;
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', status: 400, param });
    expect(error.message).toContain(`${param}: `);
    expect(error.message).toContain(words);
    expect(error.detail).toHaveLength(1);
    expect(error.detail![0]!.loc.join('.')).toBe(param.replaceAll(/[[\]#/]+/g, '.').replaceAll('..', '.'));
    expect(error.detail![0]!.input).toEqual(input);
    expect(error.detail![0]!.ctx?.['offset']).toBe(offset);
  });
});
