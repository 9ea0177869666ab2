/** Bounds: searches at compile time, the work of a mask, values that must not repeat. */
import { describe, expect, it, vi } from 'vitest';
import { compileConstraint, cutMasks, type StructuredOutputs } from '../../src/structured/index.ts';
import { testing } from '../addon/testing-addon.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

vi.mock('../../src/engine/native/grammar-addon.ts', () => import('./testing-grammar.ts'));

const vocabulary = smallVocabulary();
const eos = vocabulary.eosTokenIds[0]!;
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
const compact = { disable_any_whitespace: true };

async function takes(spec: StructuredOutputs, text: string): Promise<boolean> {
  const matcher = (await compileConstraint(spec, vocabulary)).createMatcher();
  return accepts(matcher, Buffer.from(text), mask, eos);
}

/** How many masks on the way through a text need more than a share of the work that a mask may take. */
async function largeMasks(spec: StructuredOutputs, text: string, share = 1 / 4): Promise<number> {
  testing.divideWork(1 / share);
  const matcher = (await compileConstraint(spec, vocabulary)).createMatcher();
  const before = cutMasks();
  for (const byte of Buffer.from(text)) {
    matcher.fillMask(mask);
    expect(matcher.accept(byte), `${text} at a byte of ${String.fromCharCode(byte)}`).toBe(true);
  }
  testing.divideWork(1);
  return cutMasks() - before;
}

describe('values that must not repeat', () => {
  const pairs = {
    ...compact,
    json: {
      type: 'array',
      uniqueItems: true,
      items: { type: 'array', uniqueItems: true, items: { enum: [1, 'z'] } },
    },
  };

  it('ends an array when all values of its items are there, arrays without repeats among them', async () => {
    const matcher = (await compileConstraint(pairs, vocabulary)).createMatcher();
    for (const byte of Buffer.from('[[1],["z"],[1,"z"],[],["z",1]')) expect(matcher.accept(byte)).toBe(true);
    expect(matcher.accept(','.charCodeAt(0))).toBe(false);
    expect(matcher.accept(']'.charCodeAt(0))).toBe(true);
    expect(matcher.isComplete()).toBe(true);
  });

  it.each([
    ['[["z",1],[1,"z"]]', true],
    ['[[1,"z"],[1,"z"]]', false],
    ['[[],[]]', false],
    ['[["z"],[1],[1,"z"]]', true],
  ])('%s: %s', async (text, expected) => {
    expect(await takes(pairs, text)).toBe(expected);
  });

  const long = String.raw`a text of some length, "é" 😀 \n`;
  it.each([
    [`"${'x'.repeat(40)}"`, `"${'x'.repeat(40)}"`, false],
    [`"${'x'.repeat(40)}"`, `"${'x'.repeat(41)}"`, true],
    [`"${'x'.repeat(40)}"`, `"${'x'.repeat(39)}y"`, true],
    [JSON.stringify(long), JSON.stringify(long), false],
    [
      JSON.stringify(long),
      JSON.stringify(long).replace('é', '\\u00E9').replace('😀', '\\ud83d\\uDE00'),
      false,
    ],
    [JSON.stringify(long), JSON.stringify(long).replace('é', '\\u00E8'), true],
    [JSON.stringify(long), JSON.stringify(long).replace('😀', '\\ud83d\\uDE01'), true],
    [JSON.stringify('a line\nof more than a few'), '"a line\\u000aof more than a few"', false],
    [JSON.stringify('a line\nof more than a few'), '"a line\\tof more than a few"', true],
  ])('[%s,%s]: %s', async (first, second, expected) => {
    const unique = { ...compact, json: { type: 'array', items: { type: 'string' }, uniqueItems: true } };
    expect(await takes(unique, `[${first},${second}]`)).toBe(expected);
  });
});

describe('work', () => {
  it('finds the texts of repetitions of counts at once', async () => {
    const grammar = 'start: head "!"\nhead[lazy]: TEXT* "<end>"\nTEXT: /(\\n|.{9999})*/';
    expect(await takes({ grammar }, '\n\n<end>!')).toBe(true);
    expect(await takes({ grammar }, '\na<end>!')).toBe(false);
  }, 20_000);

  const counts = 'a text"of words and d1gits, 0123456789 abcdef'.repeat(6);
  it('stays small over counts behind counts', async () => {
    const regex = '([^"x]{0,280}é{0,280}("{3,}中*)(A[^"x]*?[0-9a-f]){0,280}|.*?\\w"a?)*';
    expect(await largeMasks({ regex }, counts)).toBe(0);
  }, 60_000);

  it.each<[string, StructuredOutputs, string]>([
    [
      'counts in counts',
      { regex: '("*?.\\w{3,}){0,280}(((.?[0-9a-f])*)|(.{0,280}[0-9a-f]?[^"x]{0,280}){2,5}|中*?){0,280}' },
      counts,
    ],
    [
      'readings of a text with a limited length',
      { json: { type: 'string', maxLength: 38, pattern: '(a{0,280}a?\\p{L})*?\\d*?\\s?|\\s{3,} ' } },
      '"aaaaaaab of words and d1gits"',
    ],
  ])(
    'spends no more on %s than it may, and goes on',
    async (_, spec, text) => {
      const spent = await largeMasks(spec, text, 1);
      expect(spent).toBeGreaterThan(0);
      expect(spent).toBeLessThan(text.length);
    },
    60_000,
  );

  it('looks at a part that may be empty once, however often it may come', async () => {
    const grammar = 'root ::= part{9999}\npart ::= "{" root "}" | ""';
    expect(await largeMasks({ grammar }, '{{}{}}{}')).toBe(0);
  });

  it('keeps what a large automaton needs a long search for', async () => {
    const multiple = { json: { type: 'integer', multipleOf: 1025 } };
    expect(await takes(multiple, String(1025 * 8191))).toBe(true);
    expect(await takes(multiple, String(1025 * 8191 + 1))).toBe(false);
  });
});

describe('steps that many readings or values could make slow', () => {
  const words = 'abcdefgxyz'.repeat(40);

  it.each([
    'start: x "("+ | "z"\nx: /[a-z]+/+ y* | "x" y? /[a-z]+/ "(" ")" | "z"\ny: x+ | "y" "("+ x? | "z"',
    'start: x /[a-z]+/ /[a-z]+/* "a" | "z"\nx: /[a-z]+/* x* | "x" ")"* ")" | "z"',
    'start: /[a-z]+/+ x? y* | "z"\nx: /[a-z]+/ x* "("* /[a-z]+/ | "x" "bc" | "z"\ny: x? x* y "a" | "y" "(" /[a-z]+/* | "z"',
    'start: y? /[a-z]+/ | "z" x? y* y+\nx: y? /[a-z]+/ x? "(" | "x" ")" "a" /[a-z]+/* "bc" | "z"\ny: /[a-z]+/? x "(" "a"? | "y" y | "z"',
    'start: x ")"+ x? | "z"\nx: y+ "("? | "x" "bc" "a"+ x? ")"+ | "z"\ny: /[a-z]+/ y? x? | "y" x? /[a-z]+/ "("+ | "z"',
  ])(
    'keep few readings of an ambiguous grammar: %s',
    async (grammar) => {
      expect(await largeMasks({ grammar }, words)).toBe(0);
    },
    60_000,
  );

  const knot = 'start: y\nx: y? y ")" | "x" "a"* ")"?\ny: x* "(" x* | "y" "("+';
  const loop = 'start: x\nx: "a" y*\ny: x* | "b"';
  it.each([
    [knot, 'xy(()(x', true],
    [knot, 'xaay(x()(', true],
    [knot, 'xaa)', false],
    [loop, 'aabab', true],
    [loop, 'ba', false],
  ])('and lose none: %s takes %s: %s', async (grammar, text, expected) => {
    expect(await takes({ grammar }, text)).toBe(expected);
  });

  it('compares seen numbers and texts only as long as they may be repeated', async () => {
    const items = { type: 'array', uniqueItems: true, items: { type: 'integer', multipleOf: 28 } };
    const spec = { ...compact, json: { type: 'array', uniqueItems: true, items } };
    const numbers = Array.from({ length: 8 }, (_, i) => 28 * (i * 37 + 1));
    const rows = Array.from({ length: 8 }, (_, i) => numbers.slice(0, i));
    expect(await largeMasks(spec, JSON.stringify(rows))).toBe(0);
    expect(await takes(spec, '[[28,56],[56,28],[28]]')).toBe(true);
    expect(await takes(spec, '[[28,28]]')).toBe(false);
    expect(await takes(spec, '[[28],[28]]')).toBe(false);
  }, 60_000);

  it.each([
    ['number', '[1,1.0]', false],
    ['number', '[1,1.5]', true],
    ['number', '[1.5,1.50]', false],
    ['number', '[-1,1]', true],
    ['number', '[0,-0]', false],
    ['number', '[10,100]', true],
    ['integer', '[10,1]', true],
    ['integer', '[-10,-10]', false],
  ])('tells %s apart in %s: %s', async (type, text, expected) => {
    expect(
      await takes({ ...compact, json: { type: 'array', uniqueItems: true, items: { type } } }, text),
    ).toBe(expected);
  });

  it('refuses more different arrays than there can be', async () => {
    const items = { type: 'array', minItems: 1, uniqueItems: true, items: { enum: [1] } };
    const json = { type: 'array', minItems: 2, uniqueItems: true, items };
    await expect(compileConstraint({ json }, vocabulary)).rejects.toThrow(/no value satisfies/);
  });

  it('refuses more different texts than there can be, however many spellings they have', async () => {
    const json = {
      items: { type: 'string', pattern: '^[é/]$' },
      type: 'array',
      minItems: 3,
      uniqueItems: true,
    };
    await expect(compileConstraint({ json }, vocabulary)).rejects.toThrow(/no value satisfies/);
    expect(await takes({ json: { ...json, minItems: 2 } }, '["/","\\u00e9"]')).toBe(true);
  });

  it.each([
    [
      'objects',
      4,
      { type: 'object', properties: { a: { enum: [1, 2] } }, additionalProperties: false, minProperties: 1 },
    ],
    [
      'objects whose other keys are denied by their pattern',
      4,
      {
        type: 'object',
        properties: { a: { enum: [1, 2] }, f: { const: 1 } },
        additionalProperties: false,
        patternProperties: { '^f': false },
      },
    ],
    ['arrays', 4, { type: 'array', items: { enum: [1, 2] }, maxItems: 1, contains: { const: 1 } }],
  ])(
    'refuses more different %s than there can be, whatever else is asked of them',
    async (_, minItems, items) => {
      const json = { type: 'array', uniqueItems: true, minItems, items };
      await expect(compileConstraint({ json }, vocabulary)).rejects.toThrow(/no value satisfies/);
    },
  );
});

describe('a oneOf of open objects whose constants are not required', () => {
  const branch = (kind: string) => ({
    type: 'object',
    properties: Object.fromEntries([
      ['kind', { const: kind }],
      ...Array.from({ length: 6 }, (_, i) => [
        `${kind}${i}`,
        { type: ['string', 'integer', 'boolean'][i % 3] },
      ]),
    ]),
  });

  it.each([4, 8])('reads as anyOf with a warning: %d branches', async (count) => {
    const json = { oneOf: Array.from({ length: count }, (_, i) => branch(`s${i}`)) };
    const constraint = await compileConstraint({ json }, vocabulary);
    expect(constraint.relaxed.join()).toContain('reads as anyOf');
    expect(await takes({ json }, '{"kind":"s1","s11":3}')).toBe(true);
    await expect(compileConstraint({ json, disable_fallback: true }, vocabulary)).rejects.toThrow(
      'too many to enforce',
    );
  });

  it('reads every oneOf as anyOf where one under another cannot be denied', async () => {
    const privileges = Array.from({ length: 14 }, (_, i) => ({
      type: 'object',
      properties: { [`k${i}`]: { type: 'string' } },
      additionalProperties: false,
    }));
    const table = { type: 'object', properties: { grants: { type: 'array', items: { oneOf: privileges } } } };
    const json = { oneOf: [{ type: 'object' }, { type: 'object', properties: { table } }] };
    const constraint = await compileConstraint({ json }, vocabulary);
    expect(constraint.relaxed.join()).toContain('every oneOf reads as anyOf');
    expect(await takes({ json }, '{"table":{"grants":[{"k3":"read"}]}}')).toBe(true);
    await expect(compileConstraint({ json, disable_fallback: true }, vocabulary)).rejects.toThrow(
      'too many to enforce',
    );
  });
});
