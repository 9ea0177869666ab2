/** Grammars of a text that stands in a JSON string: `json_escaped` of a structural tag's `regex` and `grammar`. */
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));

type Format = Readonly<Record<string, unknown>>;

async function compile(text: Format) {
  const quote = { type: 'const_string', value: '"' };
  const format = { type: 'sequence', elements: [quote, { ...text, json_escaped: true }, quote] };
  return await compileConstraint({ structural_tag: { type: 'structural_tag', format } }, vocabulary);
}

/** Returns true if a format allows a JSON string, both in the vocabulary's tokens and byte by byte. */
async function allows(text: Format, json: string): Promise<boolean> {
  const constraint = await compile(text);
  const answers = [vocabulary.tokenize(json), [...Buffer.from(json)]].map((tokens) =>
    accepts(constraint.createMatcher(), tokens, mask, vocabulary.eosTokenIds[0]!),
  );
  expect(new Set(answers).size, json).toBe(1);
  return answers[0]!;
}

const regex = (pattern: string): Format => ({ type: 'regex', pattern });
const lark = (grammar: string): Format => ({ type: 'grammar', syntax: 'lark', grammar });

const QUERY = lark(String.raw`start: "say " WORD ("\n" WORD)*
WORD: /"[a-cé😀]+"/`);

describe('a text in a JSON string', () => {
  it.each<[string, Format, string, boolean]>([
    ['as it is', regex('[a-c]+'), 'abc', true],
    ['that the expression does not have', regex('[a-c]+'), 'abd', false],
    ['with quotes', regex('"[a-c]+"'), '"ab"', true],
    ['with backslashes', regex(String.raw`\\+`), '\\\\', true],
    ['with line breaks and tabs', regex(String.raw`a[\n\t]b`), 'a\nb', true],
    ['with control characters', regex(String.raw`\x01`), '\u0001', true],
    ['beyond ASCII', regex('é😀.'), 'é😀ü', true],
    ['of any characters', regex('.{3}'), 'a"\\', true],
    ['that is too long', regex('.{3}'), 'a"\\b', false],
    ['by a Lark grammar', QUERY, 'say "ab"\n"cé😀"', true],
    ['that a Lark grammar does not have', QUERY, 'say "ab"\t"c"', false],
    ['without what a Lark grammar wants', QUERY, 'say ab', false],
  ])('%s', async (_, format, text, expected) => {
    expect(await allows(format, JSON.stringify(text))).toBe(expected);
  });

  it.each([
    ['escapes of the short form', String.raw`"\"a\""`, true],
    ['escapes of four digits, where there is a short form', String.raw`"\u0022a\u0022"`, false],
    ['a quote that would end the string', '""a""', false],
  ])('spelled with %s', async (_, json, expected) => {
    expect(await allows(regex('"a"'), json)).toBe(expected);
  });

  it('is not for EBNF', async () => {
    await expect(compile({ type: 'grammar', grammar: 'root ::= "a"' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'structured_outputs.structural_tag#/format/elements/1/json_escaped',
    });
  });
});
