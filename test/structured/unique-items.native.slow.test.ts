/** Items that must all differ, however tokens cut, spell or surround them. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { compileConstraint, createVocabulary } from '../../src/structured/index.ts';

/** Bytes, then tokens that end items, hold whole ones, or hold several. */
const WORDS = [
  ...[
    '"',
    'a',
    'b',
    'ab',
    'a"',
    'b"',
    '",',
    '","',
    '", "',
    '"]',
    '","a',
    '","a"',
    '","ab"',
    '","b"]',
    'b","ab"',
    '"a","a"',
  ],
  ...['"a","b"', 'a","a', 'a","a"', 'a","b', '"\\u0061"', ',"\\u0061"', ',"', ',"a', ', ', ',', ']', '["'],
  ...[
    '1',
    '0',
    '.0',
    'e0',
    '1,',
    '1.0',
    ',1',
    ',1]',
    ',1.0',
    ',10e-1',
    '1,1',
    '1,2',
    '1,10',
    '2,1',
    '-',
    ',-',
    ',true',
    'null',
  ],
  ...[
    '[1',
    '[1]',
    '],[',
    '],[1',
    ',[1]',
    '],[1,2',
    '["a"',
    ',["a"',
    '"],["',
    '"],["a"',
    '","a"],["',
    ',[]',
    ']]',
    '],1',
  ],
  ...['{', '{"a":', '{"a":1}', ',{"a"', ',{"a":1}', '},{', '},{"', '},{"a":1', '},{"a":1}', ',{}', '}]'],
];
const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const tokens = [...bytes, ...WORDS, '<end>'];
const vocabulary = createVocabulary({ tokens, eosTokenIds: [tokens.length - 1] });

const string = { type: 'string' };
const unique = (more: object) => ({ type: 'array', uniqueItems: true, ...more });
const SCHEMAS: Record<string, Record<string, unknown>> = {
  strings: unique({ items: string }),
  'any values': unique({}),
  'strings and numbers': unique({ items: { type: ['string', 'number'] } }),
  'short strings': unique({ items: { ...string, pattern: '^[ab]{1,2}$' } }),
  'arrays of strings': unique({ items: { type: 'array', items: string } }),
  'arrays of different values': unique({ items: unique({}) }),
  'arrays of one number': unique({ items: { type: 'array', items: { type: 'integer' }, maxItems: 1 } }),
  objects: unique({ items: { type: 'object' } }),
  'few values': unique({ items: { enum: ['a', 'b', 'ab', 1, 2, [1], { a: 1 }] } }),
  'values that a negated choice leaves': unique({
    items: { not: { anyOf: [{ const: 'a' }, { const: 1 }, { type: 'null' }] } },
  }),
  'values that negated choices without values leave': unique({
    items: {
      // biome-ignore lint/suspicious/noThenProperty: a keyword
      not: { if: { not: { type: 'integer' } }, then: { type: 'integer' }, else: { type: 'object' } },
    },
  }),
  'few values of several branches': unique({
    items: {
      if: { type: 'object', properties: { a: false, b: string }, required: ['b'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword
      then: { enum: ['a'] },
      else: { enum: ['a', 'ab', 1, { a: 1 }] },
    },
  }),
  'a value among them': unique({ items: string, contains: { const: 'a' } }),
};

/** Schemas that negate uniqueItems on their way: no array with equal items is taken where that matters. */
const NEGATED: Record<string, Record<string, unknown>> = {
  'different values or three, not both': { oneOf: [unique({}), { type: 'array', minItems: 3 }] },
  'few different values, or many': {
    type: 'array',
    if: { uniqueItems: true },
    // biome-ignore lint/suspicious/noThenProperty: a keyword
    then: { maxItems: 2 },
    else: { minItems: 4 },
  },
  'no array of different strings, by a reference': {
    not: { $ref: '#/$defs/set' },
    $defs: { set: unique({ items: string }) },
  },
};

/** Whole numbers below a bound. */
function randomSource(seed: number) {
  let state = seed;
  return (bound: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % bound;
  };
}

async function open(json: Record<string, unknown>) {
  const constraint = await compileConstraint({ json }, vocabulary);
  const takes = (text: string) => {
    const matcher = constraint.createMatcher();
    return [...Buffer.from(text)].every((byte) => matcher.accept(byte)) && matcher.isComplete();
  };
  return { constraint, takes };
}

describe.each(Object.entries({ ...SCHEMAS, ...NEGATED }))('%s', (name, json) => {
  const ajv = new Ajv2020({ strict: false });

  it('masks are those of the bytes, never empty, and end in valid documents', async () => {
    const { constraint } = await open(json);
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const isAllowed = (id: number) => ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;
    const random = randomSource(1);
    let documents = 0;
    for (let walk = 0; walk < 40; walk++) {
      const matcher = constraint.createMatcher();
      let text = '';
      for (let step = 0; step < 30; step++) {
        matcher.fillMask(mask);
        const allowed: number[] = [];
        for (const [at, word] of WORDS.entries()) {
          let taken = 0;
          const whole = Buffer.from(word);
          while (taken < whole.length && matcher.accept(whole[taken]!)) taken++;
          matcher.rollback(taken);
          expect(isAllowed(256 + at), `${text} then ${word}`).toBe(taken === whole.length);
          if (taken === whole.length) allowed.push(256 + at);
        }
        if (matcher.isComplete() && random(3) === 0) break;
        if (allowed.length === 0) allowed.push(...[...bytes.keys()].filter(isAllowed));
        if (allowed.length === 0) expect(matcher.isComplete(), `nothing may follow ${text}`).toBe(true);
        if (allowed.length === 0) break;
        const id = allowed[random(allowed.length)]!;
        expect(matcher.accept(id)).toBe(true);
        text += id < 256 ? String.fromCharCode(id) : WORDS[id - 256];
      }
      if (!matcher.isComplete()) continue;
      documents++;
      expect(ajv.validate(json, JSON.parse(text)), text).toBe(true);
    }
    expect(documents).toBeGreaterThan(0);
  });

  it('takes the arrays that ajv takes', async () => {
    const { takes } = await open(json);
    const random = randomSource(2);
    const value = (depth: number): unknown => {
      const kind = random(depth > 0 ? 8 : 6);
      if (kind < 2) return ['a', 'b', 'ab'][random(3)];
      if (kind < 4) return 1 + random(2);
      if (kind < 6) return [null, true, -1.5][random(3)];
      const items = Array.from({ length: random(3) }, () => value(depth - 1));
      return kind === 6 ? items : Object.fromEntries(items.map((item, at) => ['ab'[at], item]));
    };
    for (let i = 0; i < 300; i++) {
      const items = Array.from({ length: random(5) }, () => value(2));
      if (items.length > 0 && random(2)) items.push(items[random(items.length)]);
      const kept = random(2)
        ? items
        : items.filter((item) => typeof item === 'string' || typeof item === 'number');
      const text = JSON.stringify(kept);
      if (name in SCHEMAS || takes(text)) expect(takes(text), text).toBe(ajv.validate(json, kept));
    }
  });
});

it.each([
  ['[1,1.0]', true],
  ['[1,10e-1]', true],
  ['["a","\\u0061"]', true],
  ['[{"a":1,"b":[2]},{"b":[2.0],"a":1}]', true],
  ['[1,2,1.5]', false],
])('%s has equal items: %s', async (text, has) => {
  expect(await open({ uniqueItems: true }).then(({ takes }) => takes(text))).toBe(!has);
});

it.each([
  ['#/not/uniqueItems', { not: { uniqueItems: true } }],
  ['#/properties/x/not/allOf/0/uniqueItems', { properties: { x: { not: { allOf: [unique({})] } } } }],
])('%s is refused', async (pointer, json) => {
  await expect(compileConstraint({ json }, vocabulary)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: `structured_outputs.json${pointer}: uniqueItems cannot be enforced under a negation`,
  });
});

it('two negations of uniqueItems are none', async () => {
  const { takes } = await open({ not: { not: { uniqueItems: true } } });
  expect([takes('[1,2]'), takes('[1,1]')]).toEqual([true, false]);
});
