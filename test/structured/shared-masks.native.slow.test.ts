/** Constraints on one vocabulary share caches of expressions; each must still get its own masks. */
import { expect, it } from 'vitest';
import { compileConstraint, createVocabulary, type Vocabulary } from '../../src/structured/index.ts';
import { realVocabulary } from './vocabularies.ts';

const letter = (i: number): string => String.fromCharCode(97 + (i % 26));
const word = (i: number, length: number): string =>
  Array.from({ length }, (_, at) => letter(i * 7 + at * (i + 3))).join('');

/** Bytes, then words after a blank of each class of length. */
function wordVocabulary() {
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const words = [2, 6, 20, 40].flatMap((length) =>
    Array.from({ length: 60 }, (_, i) => ` ${word(i, length)}`),
  );
  const tokens = [...bytes, ...new Set(words), '<end>'];
  return { tokens, vocabulary: createVocabulary({ tokens, eosTokenIds: [tokens.length - 1] }) };
}

/** Expressions with the same part after the blank, and different alternatives to it. */
const EXPRESSIONS = ['[^ ].{4}| (.*)', '[^ ].{30}| (.*)', '[^ ]{50}| (.*)', '[a-z]{8}|( .*)', '[^ ].{12}|x'];

it.each([EXPRESSIONS, [...EXPRESSIONS].reverse()])(
  'masks are those of the bytes, in any order',
  async (...order) => {
    const { tokens, vocabulary } = wordVocabulary();
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    for (const regex of order) {
      const constraint = await compileConstraint({ regex }, vocabulary);
      constraint.createMatcher().fillMask(mask);
      for (const [id, token] of tokens.slice(0, -1).entries()) {
        const probe = constraint.createMatcher();
        const isViable = [...Buffer.from(token)].every((byte) => probe.accept(byte));
        const isAllowed = ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;
        expect(isAllowed, `${regex}: ${JSON.stringify(token)}`).toBe(isViable);
      }
    }
  },
);

/** A matcher behind each beginning of a text whose mask is that of the bytes, at every 97th token. */
async function compareWithBytes(
  spec: Parameters<typeof compileConstraint>[0],
  vocabulary: Vocabulary,
  text: string,
  from: number,
) {
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  const single = Array.from({ length: 256 }, (_, byte) => vocabulary.tokenize(Uint8Array.of(byte))[0]!);
  const matcher = (await compileConstraint(spec, vocabulary)).createMatcher();
  const feed = (to: typeof matcher, bytes: Iterable<number>) =>
    [...bytes].every((byte) => to.accept(single[byte]!));
  feed(matcher, Buffer.from(text.slice(0, from)));
  for (let at = from; at <= text.length; feed(matcher, Buffer.from(text[at++] ?? ''))) {
    matcher.fillMask(mask);
    for (let id = at; id < 128_000; id += 97) {
      const isViable = feed(matcher.clone(), vocabulary.bytes(id));
      const isAllowed = ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;
      expect(isAllowed, `token ${id} behind ${text.slice(0, at)}`).toBe(isViable);
    }
  }
}

it.for([
  ['any character', { maxLength: 12 }],
  ['a class with blanks', { pattern: '^[A-Za-z .]{2,9}$' }],
  ['a class beyond ASCII', { pattern: '^[a-zéü中]{0,6}$' }],
  ['all but some', { pattern: '^[^<>e]{1,40}$' }],
] as const)('near the end of a count, masks are those of the bytes: %s', async ([, limits], { skip }) => {
  const vocabulary = await realVocabulary('llama-bpe');
  if (typeof vocabulary === 'string') return skip(vocabulary);
  await compareWithBytes({ json: { type: 'string', ...limits } }, vocabulary, '"abbb', 2);
});

it.for([
  ['alike everywhere', '[A-Za-z0-9-]+', 'a-b0'],
  ['apart at the start', '[a-f][a-z0-9]*', 'az'],
  ['apart behind the first', '[a-z][a-f ]*(\\.[A-Z]+)?', 'za.A'],
  ['apart behind a blank', ' ?[a-z]+[ -][A-M]+[0-9]*', 'ab B0'],
  ['some digits', '[a-z]*(0|[1-9][0-9]{0,2})', 'a10'],
  ['an end among letters', '(ab|[a-z]{5}|[A-Z]+)', 'ab'],
  ['counted to any end', '[a-z ]{0,9}', 'a bcd'],
  ['counted in groups', '([a-z]{2}[0-9]?){1,4}', 'ab1cd'],
  ['counted before a part', '[a-z]{1,6}(-[0-9]{2,3})?', 'abc-1'],
] as const)('letters and digits that are %s', async ([, regex, text], { skip }) => {
  const vocabulary = await realVocabulary('llama-bpe');
  if (typeof vocabulary === 'string') return skip(vocabulary);
  await compareWithBytes({ regex }, vocabulary, text, 0);
});

it.for([
  ['a regex', { regex: '[a-z ]{1,5000}' }, ''],
  ['a string', { json: { type: 'string', pattern: '^[a-z ]{1,5000}$' } }, '"'],
] as const)('masks inside of a large count are not made again: %s', async ([, spec, begin], { skip }) => {
  const vocabulary = await realVocabulary('llama-bpe');
  if (typeof vocabulary === 'string') return skip(vocabulary);
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  const matcher = (await compileConstraint(spec, vocabulary)).createMatcher();
  const times: number[] = [];
  for (const id of vocabulary.tokenize(Buffer.from(begin + 'some words of a text '.repeat(60)))) {
    const start = performance.now();
    matcher.fillMask(mask);
    times.push(performance.now() - start);
    expect(matcher.accept(id)).toBe(true);
  }
  times.sort((a, b) => a - b);
  expect(times[times.length >> 1]).toBeLessThan(0.1); // 0.002 ms; a mask that is made takes 0.7
});

/** Regular expressions, what their texts may begin with, and a text. JavaScript's own expressions are the oracle. */
it.for([
  ['[a-z ]{0,9}', /^[a-z ]{0,9}$/, 'a bcd efg'],
  ['[a-z ]{1,5000}', /^[a-z ]{0,5000}$/, 'some words'],
  ['([A-Za-z0-9+/]{4}){0,5}', /^[A-Za-z0-9+/]{0,20}$/, 'QUJDREVGR0hJSktM'],
  ['[a-z]{1,6}(-[0-9]{2,3})?', /^([a-z]{0,6}|[a-z]{1,6}-[0-9]{0,3})$/, 'abc-123'],
] as const)('masks are those of JavaScript: %s', async ([regex, begin, text], { skip }) => {
  const vocabulary = await realVocabulary('llama-bpe');
  if (typeof vocabulary === 'string') return skip(vocabulary);
  const tokens = Array.from({ length: 128_000 }, (_, id) =>
    Buffer.from(vocabulary.bytes(id)).toString('latin1'),
  );
  const single = new Map(tokens.flatMap((token, id) => (token.length === 1 ? [[token, id]] : [])));
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  const matcher = (await compileConstraint({ regex }, vocabulary)).createMatcher();
  for (let at = 0; at <= text.length; at++) {
    matcher.fillMask(mask);
    const wrong = tokens.filter(
      (token, id) => (((mask[id >> 5]! >>> (id & 31)) & 1) === 1) !== begin.test(text.slice(0, at) + token),
    );
    expect(wrong, `behind ${text.slice(0, at)}`).toEqual([]);
    if (at < text.length) expect(matcher.accept(single.get(text[at]!)!)).toBe(true);
  }
});
