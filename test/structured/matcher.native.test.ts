import { describe, expect, it } from 'vitest';
import { compileConstraint, type StructuredOutputs } from '../../src/structured/index.ts';
import { accepts, isAllowed, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const eos = vocabulary.eosTokenIds[0]!;
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
const bytesOf = (text: string) => [...Buffer.from(text)];

describe('accepted texts', () => {
  it.each<[StructuredOutputs, string[], string[]]>([
    [{ regex: '[0-9]{2,3}' }, ['12', '123'], ['1', '1234', 'ab', '']],
    [{ regex: '^a+?b$' }, ['ab', 'aab'], ['b', 'aba']],
    [{ regex: '\\p{L}+' }, ['é', '中文'], ['1', '']],
    [{ choice: ['yes', 'no', 'yes!'] }, ['yes', 'no', 'yes!'], ['ye', 'yes!!', '']],
    [{ grammar: 'root ::= "a" root "b" | "c"' }, ['c', 'acb', 'aacbb'], ['ac', 'acbb']],
    [{ grammar: 'root ::= root "+" [0-9] | [0-9]' }, ['1', '1+2+3'], ['+', '1+', '1++2']],
    [{ grammar: 'root ::= root root | "x" | ""' }, ['', 'x', 'xxxxx'], ['y']],
    [{ grammar: 'start: item ("," item)*\nitem: /[a-z]/' }, ['a', 'a,b'], ['a,', ',']],
    [{ json_object: true }, ['{}', '{"a": [1, {"b": null}]}'], ['[]', '{"a":1,"a":2}', '{"a":1', '{"a":1,}']],
    [{ json: { type: 'integer', minimum: 5, maximum: 30 } }, ['5', '17', '30'], ['4', '31', '-5', '5.5']],
    [{ json: { multipleOf: 0.01, type: 'number' } }, ['1.25', '3', '0.10'], ['1.255']],
    [{ json: { type: 'string', maxLength: 2 } }, ['""', '"é中"', '"\\u00e9a"'], ['"abc"']],
    [
      { json: { uniqueItems: true } },
      ['[1, 2]', '[{"a":1}, {"a":2}]', '3'],
      ['[1, 1]', '[{"a":1}, {"a":1}]'],
    ],
    [{ json: { not: { type: 'string' } } }, ['1', '[]'], ['"a"']],
    [{ json: { oneOf: [{ minimum: 2 }, { maximum: 3 }], type: 'integer' } }, ['1', '4'], ['2', '3']],
    [
      { json: '{"if":{"required":["a"]},"then":{"required":["b"]},"type":"object"}' },
      ['{}', '{"b":1}', '{"a":1,"b":2}'],
      ['{"a":1}'],
    ],
    [{ json: { contains: { const: 1 }, maxContains: 1 } }, ['[1]', '[2, 1]'], ['[]', '[1, 1]']],
    [{ json: { dependentRequired: { a: ['b'] } } }, ['{"a":1,"b":1}', '{"b":1}', '{}'], ['{"a":1}']],
    [
      { json: { type: 'object', minProperties: 1, maxProperties: 2 } },
      ['{"a":1}'],
      ['{}', '{"a":1,"b":1,"c":1}'],
    ],
    [
      { json: { properties: { a: true, b: true }, type: 'object', additionalProperties: false } },
      ['{}', '{"a":1,"b":2}', '{"b":2}'],
      ['{"b":2,"a":1}', '{"c":1}'],
    ],
    [
      { json: { 'x-property-order': 'any', properties: { a: true, b: true }, required: ['a', 'b'] } },
      ['{"a":1,"b":2}', '{"b":2,"a":1}'],
      ['{"b":2}', '{"b":2,"b":1}'],
    ],
    [
      { json: { properties: { a: true, b: true }, required: ['a', 'b'] }, property_order: 'any' },
      ['{"a":1,"b":2}', '{"b":2,"a":1}', '{"c":1,"b":2,"d":{},"a":1}'],
      ['{"b":2}', '{"b":2,"b":1,"a":1}'],
    ],
    [
      { json: { properties: { name: { type: 'null' }, nam: false }, required: ['id'], type: 'object' } },
      ['{"name":null,"id":1}', '{"id":1,"names":2,"na":3}', '{"n\u00e4m":1,"id":{}}'],
      ['{"name":1,"id":1}', '{"id":1,"nam":1}', '{"id":1,"id":2}', '{"id":1,"name":null,"name":null}'],
    ],
    [
      { json: { properties: { 'a/b': { type: 'null' }, é: { type: 'null' } }, type: 'object' } },
      ['{"a/b":null}', '{"a\\/b":null,"\\u00e9":null}', '{"é":null}', '{"a/c":1}'],
      ['{"a/b":1}', '{"a\\/b":1}', '{"\\u00e9":1}', '{"é":1}'],
    ],
    [
      { json: { minimum: 0, maximum: 150, type: 'number' } },
      ['0', '150', '2e-4', '1.5e2', '9.9E+1', '1.49e02', '1e-999'],
      ['151', '1.51e2', '2e3', '-2e-4', '-1', '1e999', '0e1'],
    ],
    [
      { json: { exclusiveMinimum: -90.5, type: 'number' } },
      ['-9.04e1', '-1e1', '3e300', '-1e-300', '-9.0499999e+01'],
      ['-9.05e1', '-9.051e1', '-1e2', '-9.06e1'],
    ],
    [{ json: { multipleOf: 3, minimum: 0 } }, ['6', '9.0'], ['7', '3e1']],
    [
      { json: { type: 'string', format: 'regex' } },
      ['"^[a-z]+(foo|ba{2,3})?$"', '"a*?"', '"(?:x(y)+)|\\\\d{3}"', '""', '"[^a-c]"'],
      ['"*"', '"["', '"a**"', '"(a"', '"a{3,2}"', '"[z-a]"', '"\\\\"'],
    ],
    [
      { json: { type: 'string', pattern: '^([a-z]+(;|$))+$' } },
      ['"ab;cd"', '"ab;"', '"ab"'],
      ['"ab cd"', '""', '";"', '"ab;;c"'],
    ],
    [{ json: { type: 'string', pattern: '(^a|b){2}' } }, ['"ab"', '"xbb"', '"bb"'], ['"xab"', '"a"', '"b"']],
    [
      { json: { type: 'string', pattern: '\\bcat\\b' } },
      ['"cat"', '"a cat sat"', '"cat-like"', '"écat"'],
      ['"cats"', '"concat"', '"cat_"', '""'],
    ],
    [{ json: { type: 'string', pattern: '^\\w+\\B-?\\w$' } }, ['"ab"'], ['"a-b"', '"a"']],
    [{ json: { type: 'string', pattern: '^[\0-\u001f]x$' } }, ['"\\u0000x"', '"\\nx"'], ['"x"', '"ax"']],
    [
      { json: { type: 'string', pattern: '^(?:[a-z]+ ){0,9}[a-z]+$', maxLength: 12 } },
      ['"ab cd efg"', '"abcdefghijkl"'],
      ['"ab  c"', '"abcdefghijklm"', '"abcdefghijk l"'],
    ],
    [
      { json: { type: 'string', pattern: '^[^<>]+$', minLength: 3, maxLength: 90 } },
      ['"abc"', `"${'x'.repeat(90)}"`],
      ['"ab"', `"${'x'.repeat(91)}"`, '"ab<"'],
    ],
    [{ json: { type: 'array' }, disable_any_whitespace: true }, ['[1,2]'], ['[1, 2]', '[ ]']],
    [{ json: { type: 'array' }, whitespace_pattern: ' ' }, ['[ 1 , 2 ]'], ['[1,2]']],
    [{ json: { properties: { a: true } }, disable_additional_properties: true }, ['{"a":1}'], ['{"b":1}']],
    [
      {
        structural_tag: {
          type: 'structural_tag',
          structures: [{ begin: '<f>', schema: { type: 'null' }, end: '</f>' }],
          triggers: ['<f'],
        },
      },
      ['free text', 'x<f>null</f>y', '<'],
      ['<f>1</f>', '<f', '<f>null'],
    ],
  ])('%j', async (spec, valid, invalid) => {
    const constraint = await compileConstraint(spec, vocabulary);
    for (const text of [...valid, ...invalid]) {
      const expected = valid.includes(text);
      expect(accepts(constraint.createMatcher(), bytesOf(text), mask, eos), `bytes of ${text}`).toBe(
        expected,
      );
      expect(accepts(constraint.createMatcher(), vocabulary.tokenize(text), mask, eos), text).toBe(expected);
    }
  });
});

describe('masks', () => {
  it.each<[StructuredOutputs, string]>([
    [{ regex: '(ab|cd)*[^x]{2,5}' }, 'abcdab'],
    [{ regex: '[a-z]+ [a-z]{3}' }, 'the fox'],
    [{ choice: ['hello world', 'help', 'foo'] }, 'hello'],
    [{ grammar: 'root ::= "(" root ")" | [a-z]+' }, '((ab)'],
    [
      { json: { properties: { a: { type: 'string', maxLength: 6 }, foo: { type: 'integer' } } } },
      '{"a": "hello", "foo": 12, "x": [1]}',
    ],
    [{ json: { type: 'array', items: { enum: ['a', 'b', 'abc'] }, uniqueItems: true } }, '["a", "abc", "b"]'],
    [{ json_object: true }, '{"a": {"a": 1, "b": "中"}, "b": [true, null]}'],
    [
      { json: { patternProperties: { '^a': { type: 'integer' } }, additionalProperties: false } },
      '{"ab": 1, "abc": 2}',
    ],
    [{ regex: '[^"]*中[a-z ]+' }, 'é😀中 ab'],
    [{ regex: '([a-z]|é)+([0-9a-f-]|中)*' }, 'aéé12-a中'],
    [{ json: { patternProperties: { 'f.*': { type: 'integer' }, 'b.*': false } } }, '{"foo": 1, "a": "é"}'],
    [{ json: { type: 'string', format: 'hostname' } }, '"ab.foo"'],
    [{ json: { additionalProperties: { type: 'string' } } }, '{"ab": "x", "abc": "é\\n"}'],
    [
      { json: { 'x-property-order': 'any', properties: { a: true, b: { maxLength: 3 } }, required: ['b'] } },
      '{"a": 1, "b": "é中"}',
    ],
    [
      {
        structural_tag: {
          type: 'structural_tag',
          format: { type: 'tag', begin: '<a>', content: { type: 'any_text' }, end: '</a>' },
        },
      },
      '<a>hello fo</a>',
    ],
  ])('agree bit for bit with feeding every token byte by byte: %j', async (spec, text) => {
    const matcher = (await compileConstraint(spec, vocabulary)).createMatcher();
    for (const byte of [-1, ...bytesOf(text)]) {
      if (byte >= 0) expect(matcher.accept(byte)).toBe(true);
      matcher.fillMask(mask);
      for (let token = 0; token < vocabulary.size - 2; token++) {
        const probe = matcher.clone();
        const viable = [...vocabulary.bytes(token)].every((part) => probe.accept(part));
        expect(isAllowed(mask, token), `token ${token} after ${text}`).toBe(viable);
      }
      expect(isAllowed(mask, eos)).toBe(matcher.isComplete());
    }
  });

  it('allow special tokens only where a format names them', async () => {
    const special = vocabulary.size - 1;
    const named = await compileConstraint(
      { structural_tag: { type: 'structural_tag', format: { type: 'token', token: '<tool>' } } },
      vocabulary,
    );
    const matcher = named.createMatcher();
    matcher.fillMask(mask);
    expect(isAllowed(mask, special)).toBe(true);
    expect(matcher.accept(special) && matcher.isComplete()).toBe(true);
    const text = (await compileConstraint({ regex: '.*' }, vocabulary)).createMatcher();
    text.fillMask(mask);
    expect(isAllowed(mask, special)).toBe(false);
    expect(text.accept(special)).toBe(false);
  });
});

/** Grammars, texts that match them, and texts that do not. */
describe('grammars', () => {
  it.each<[string, string[], string[]]>([
    ['root ::= a "!"\na[lazy] ::= b\nb ::= [a-z]* "e"', ['e!', 'abe!'], ['ee!', '!', 'a!']],
    ['root[max_chars=2] ::= a\na ::= [a-z]*', ['', 'ab'], ['abc']],
    ['start: "a" "b" %ignore " "', ['ab', 'a b', 'ab  '], [' ab', 'aab']],
    ['start: "%ignore" "b"', ['%ignoreb'], ['%ignore b', 'b']],
  ])('%j', async (grammar, right, wrong) => {
    const constraint = await compileConstraint({ grammar }, vocabulary);
    const isRight = (text: string) => accepts(constraint.createMatcher(), bytesOf(text), mask, eos);
    expect([...right, ...wrong].filter(isRight)).toEqual(right);
  });
});

describe('a matcher', () => {
  it('rolls back and clones', async () => {
    const constraint = await compileConstraint(
      {
        json: {
          required: ['name'],
          properties: { name: { const: 'ab' } },
          additionalProperties: false,
          type: 'object',
        },
        disable_any_whitespace: true,
      },
      vocabulary,
    );
    const matcher = constraint.createMatcher();
    expect(matcher.forcedTokens()).toHaveLength(0); // a list of tokens does not say how a model splits texts
    for (const byte of bytesOf('{"na')) expect(matcher.accept(byte)).toBe(true);
    const other = matcher.clone();
    expect(matcher.accept(120)).toBe(false);
    for (const byte of bytesOf('me":"ab"}')) expect(matcher.accept(byte)).toBe(true);
    expect(matcher.isComplete()).toBe(true);
    matcher.rollback(9);
    expect(matcher.isComplete()).toBe(false);
    for (const copy of [matcher, other]) expect(copy.accept('m'.charCodeAt(0))).toBe(true);
    expect(() => matcher.rollback(100)).toThrow(/cannot take back/);
    matcher.dispose();
    expect(() => matcher.isComplete()).toThrow(/disposed/);
  });

  it('ends with the end of sequence', async () => {
    const matcher = (await compileConstraint({ choice: ['a'] }, vocabulary)).createMatcher();
    expect(matcher.accept(eos)).toBe(false);
    expect(matcher.accept(97)).toBe(true);
    expect(matcher.accept(eos)).toBe(true);
    expect(matcher.accept(97)).toBe(false);
  });
});

describe('refusals', () => {
  it.each<[StructuredOutputs, string, RegExp]>([
    [{ json: '{"type": ' }, 'INVALID_REQUEST', /line 1, column \d+.*not JSON/],
    [
      { json: { properties: { a: { type: 'strin' } } } },
      'INVALID_REQUEST',
      /#\/properties\/a\/type: unknown type 'strin'/,
    ],
    [
      { json: { properties: { a: { pattern: '(' } } } },
      'INVALID_REQUEST',
      /#\/properties\/a\/pattern.*unclosed group/,
    ],
    [{ json: { pattern: '(a)\\1' } }, 'UNSUPPORTED', /#\/pattern.*backreferences/],
    [{ json: { $ref: 'http://example.com/x' } }, 'UNSUPPORTED', /#\/\$ref/],
    [{ json: { type: 'integer', minimum: 5, maximum: 4 } }, 'INVALID_REQUEST', /no value satisfies/],
    [
      {
        json: {
          $defs: { n: { required: ['n'], properties: { n: { $ref: '#/$defs/n' } }, type: 'object' } },
          $ref: '#/$defs/n',
        },
      },
      'INVALID_REQUEST',
      /no value satisfies/,
    ],
    [{ json: { format: 'colour' }, disable_fallback: true }, 'UNSUPPORTED', /#\/format/],
    [{ regex: 'a(?=b)' }, 'UNSUPPORTED', /offset 2: look-ahead/],
    [{ regex: '[b-a]' }, 'INVALID_REQUEST', /offset 1: character range/],
    [{ grammar: 'root ::= missing' }, 'INVALID_REQUEST', /line 1, column 10: rule 'missing'/],
    [{ grammar: 'root ::= "a" root' }, 'INVALID_REQUEST', /no text can match/],
    [{ grammar: 'start: "a\n' }, 'INVALID_REQUEST', /line 1, column 8: unterminated string/],
    [{ grammar: 'start: A\nA: "\\ud800"' }, 'INVALID_REQUEST', /line 2, column 5: unpaired surrogate/],
    [{ grammar: 'root ::= "\\ud800"' }, 'INVALID_REQUEST', /line 1, column 11: unpaired surrogate/],
    [
      { grammar: 'root ::= "a" Regex("(?i")' },
      'INVALID_REQUEST',
      /line 1, column 20: .*offset 0: unclosed group/,
    ],
    [{ grammar: 'start: /a[/' }, 'INVALID_REQUEST', /line 1, column 8: unterminated expression/],
    [{ grammar: 'start: a\na[lazy]: b\nb: "x"' }, 'UNSUPPORTED', /line 2, column 10: .*only terminals/],
    [{ grammar: 'root[lazy] ::= "a" root?' }, 'UNSUPPORTED', /line 1, column 1: .*refer to itself/],
    [
      { structural_tag: { type: 'structural_tag', format: { type: 'wat' } } },
      'UNSUPPORTED',
      /#\/format\/type/,
    ],
  ])('%j', async (spec, code, message) => {
    await expect(compileConstraint(spec, vocabulary)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it('lists annotations as warnings', async () => {
    const constraint = await compileConstraint({ json: { title: 'T', format: 'colour' } }, vocabulary);
    expect(constraint.warnings).toEqual([
      "#/title: 'title' does not restrict values",
      "#/format: unknown format 'colour' is not enforced",
    ]);
    expect(constraint.relaxed).toEqual(["#/format: unknown format 'colour' is not enforced"]);
  });

  it('gives the same constraint for the same content', async () => {
    const spec = { json: { type: 'null' } };
    expect(await compileConstraint(spec, vocabulary)).toBe(await compileConstraint({ ...spec }, vocabulary));
  });
});
