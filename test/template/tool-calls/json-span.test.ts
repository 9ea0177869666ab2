/** The incremental JSON check agrees with JSON.parse. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { JsonSpan } from '../../../src/template/tool-calls/json-span.ts';

/** Feeds a text in pieces, and a space behind it that ends a number. */
function span(text: string, size: number): JsonSpan & { read: string } {
  const json = Object.assign(new JsonSpan(), { read: '' });
  const whole = `${text} `;
  for (let at = 0; at < whole.length && !json.isComplete && !json.isBroken; at += size) {
    json.scan(whole.slice(at, at + size));
    json.read += json.output;
  }
  return json;
}

it('reads every value that JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(2), fc.integer({ min: 1, max: 9 }), (value, indent, size) => {
      const text = JSON.stringify(value, null, indent);
      const json = span(text, size);
      expect(json.isComplete).toBe(true);
      expect(json.read).toBe(text);
    }),
  );
});

it('accepts what JSON.parse accepts, and nothing else', () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u00e9\\n"',
    '"\\x"',
    '1',
    '-0.5e+3',
    '01',
    '1.',
    'true',
    'nul',
    'null',
    ' ',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), fc.integer({ min: 1, max: 4 }), (pieces, size) => {
      const text = pieces.join('');
      const json = span(text, size);
      let isValid = true;
      try {
        JSON.parse(text);
      } catch {
        isValid = false;
      }
      // a complete value may be followed by text that does not belong to it
      if (isValid) expect(json.isComplete).toBe(true);
      if (json.isComplete) expect(() => JSON.parse(json.read)).not.toThrow();
    }),
    { numRuns: 2000 },
  );
});

it('escapes raw control characters in strings and stops behind the value', () => {
  const json = new JsonSpan();
  expect(json.scan('{"a": "b\n\u0001"} rest')).toBe(12);
  expect(json.output).toBe('{"a": "b\\n\\u0001"}');
});
