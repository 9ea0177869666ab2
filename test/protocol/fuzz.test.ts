/** Whatever comes in: a valid request, or one error of ours. Making the values takes nearly all of the time. */
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import {
  checkVocabulary,
  validateChatRequest,
  validateListQuery,
  validateLogRequest,
  validateModelCreateRequest,
  validateTrainingJobRequest,
} from '../../src/protocol/index.ts';
import { definitions } from '../../src/protocol/schemas/index.ts';

vi.setConfig({ testTimeout: 60_000 });

const fields = Object.keys(definitions['ChatCompletionRequest']!.properties!);

/** Values that are often wrong in interesting ways, and now and then right. */
const value = fc.oneof(
  fc.constantFrom(
    null,
    undefined,
    0,
    -0,
    1,
    -1,
    2,
    0.5,
    '',
    'a',
    true,
    false,
    Number.NaN,
    Infinity,
    2 ** 63,
    5n,
  ),
  fc.constantFrom<unknown>(
    [],
    {},
    [''],
    ['a'],
    [1],
    { type: 'function', function: { name: 'a' } },
    () => 1,
    Symbol.iterator,
  ),
  fc.constantFrom<unknown>(
    { type: 'json_object' },
    { regex: 'a' },
    { include_usage: true },
    new Map(),
    new Date(0),
  ),
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
    maxDepth: 3,
  }),
);

const part = fc.oneof(
  fc.record(
    { type: fc.constantFrom('text', 'refusal', 'image_url', 'x'), text: value, refusal: value },
    { requiredKeys: [] },
  ),
  value,
);

const message = fc.oneof(
  fc.record(
    {
      role: fc.constantFrom<unknown>('user', 'assistant', 'tool', 'developer', 'x', 5, ''),
      content: fc.oneof(value, fc.array(part, { maxLength: 3 })),
      tool_calls: fc.oneof(
        value,
        fc.array(fc.record({ function: fc.record({ name: value, arguments: value }) }), { maxLength: 2 }),
      ),
      tools: value,
      reasoning: value,
      tool_call_id: value,
      __proto__: value,
    },
    { requiredKeys: [] },
  ),
  value,
);

const request = fc
  .record(
    {
      messages: fc.oneof(fc.array(message, { maxLength: 3 }), value),
      tools: fc.oneof(fc.array(value, { maxLength: 2 }), value),
      unknown_field: value,
    },
    { requiredKeys: ['messages'] },
  )
  .chain((some) =>
    fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 8 }).map((more) => ({ ...more, ...some })),
  );

function holds(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(OnpolicyError);
    const { code, detail, cause } = error as OnpolicyError;
    expect(code).toBe('INVALID_REQUEST');
    expect(cause, 'only inputs that throw by themselves have a cause').toBeUndefined();
    for (const one of detail!) {
      expect(one.msg.length).toBeLessThan(400);
      expect(one.loc.every((step) => typeof step === 'string')).toBe(true);
    }
  }
}

it('chat completion requests are valid or refused', () => {
  fc.assert(
    fc.property(request, fc.boolean(), (input, wire) =>
      holds(() => checkVocabulary(validateChatRequest(input, { wire, maxLogprobs: 20 }), 100)),
    ),
    { numRuns: 1000 },
  );
});

it('a request with a few odd fields is valid or refused', () => {
  const few = fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 3 });
  fc.assert(
    fc.property(few, (some) =>
      holds(() => validateChatRequest({ messages: [{ role: 'user', content: 'a' }], ...some })),
    ),
    { numRuns: 1000 },
  );
});

it('any JSON and any value is valid or refused', () => {
  const checks = [
    validateChatRequest,
    validateTrainingJobRequest,
    validateLogRequest,
    validateListQuery,
    validateModelCreateRequest,
  ];
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.anything()), fc.constantFrom(...checks), (input, check) =>
      holds(() => check(input, { wire: true })),
    ),
    { numRuns: 1000 },
  );
});

it('what is valid stays valid when it goes over the wire', () => {
  const written = fc.jsonValue({ maxDepth: 2 }).map((some) => JSON.parse(JSON.stringify(some)) as unknown); // no -0
  const few = fc.dictionary(fc.constantFrom(...fields), written, { maxKeys: 4 });
  fc.assert(
    fc.property(few, (some) => {
      const input = { messages: [{ role: 'user', content: 'a' }], ...some };
      let normal: unknown;
      try {
        normal = validateChatRequest(input);
      } catch {
        return;
      }
      expect(validateChatRequest(JSON.parse(JSON.stringify(input)), { wire: true })).toEqual(normal);
    }),
    { numRuns: 1000 },
  );
});
