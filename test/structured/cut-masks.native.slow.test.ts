import { describe, expect, it } from 'vitest';
import { compileConstraint, cutMasks } from '../../src/structured/index.ts';
import { isAllowed, realVocabulary } from './vocabularies.ts';

/** An open object with a constant that tells its kind, but is not required. */
const kind = (name: string) => ({
  type: 'object',
  properties: Object.fromEntries([
    ['kind', { const: name }],
    ...['string', 'integer', 'boolean', 'number'].map((type, i) => [`${name}_f${i}`, { type }]),
  ]),
});

describe('cutMasks', () => {
  it('counts masks whose work was spent, and no others', async ({ skip }) => {
    const vocabulary = await realVocabulary('llama-bpe');
    if (typeof vocabulary === 'string') return skip(vocabulary);
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const walk = async (json: Readonly<Record<string, unknown>>, text: string) => {
      const matcher = (await compileConstraint({ json }, vocabulary)).createMatcher();
      const before = cutMasks();
      for (const id of vocabulary.tokenize(text)) {
        matcher.fillMask(mask);
        matcher.accept(id);
      }
      return cutMasks() - before;
    };
    const words = { type: 'string', pattern: '^(?:\\S+\\s+){0,199}\\S+$', maxLength: 2000 };
    expect(await walk(words, '"slowly across the bay toward the hills"')).toBe(0);
    const kinds = { oneOf: ['amber', 'slate', 'ochre', 'teal'].map(kind) };
    expect(await walk(kinds, '{"kind":"ochre","ochre_f0":"x y","other":[1,2]}')).toBe(0);
    const patterns = [
      '\\{\\{.*\\}\\}',
      '\\b(yes|no)\\b',
      '\\p{Lu}\\p{Ll}+',
      '[^/]+/[^/]+',
      '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}',
    ];
    const oneOf = patterns.map((pattern) => ({ type: 'string', pattern }));
    expect(await walk({ oneOf }, '"latest/stable"')).toBeGreaterThan(0);
  });

  it('counts no mask behind the one that lacks tokens, and counts that one each time', async ({ skip }) => {
    const vocabulary = await realVocabulary('llama-bpe');
    if (typeof vocabulary === 'string') return skip(vocabulary);
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const patterns = [
      '\\{\\{.*\\}\\}',
      '\\b(yes|no)\\b',
      '\\p{Lu}\\p{Ll}+',
      '[^/]+/[^/]+',
      '(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}',
    ];
    const json = {
      type: 'object',
      properties: {
        ref: { oneOf: patterns.map((pattern) => ({ type: 'string', pattern })) },
        note: { type: 'string' },
      },
      required: ['ref', 'note'],
      additionalProperties: false,
    };
    const constraint = await compileConstraint({ json, disable_any_whitespace: true }, vocabulary);
    const parts = ['{"ref":"', 'latest/stable', '","note":"', 'all is well here'];
    const cutsOfParts = () => {
      const matcher = constraint.createMatcher();
      return parts.map((part) => {
        const before = cutMasks();
        for (const token of vocabulary.tokenize(part)) {
          expect(matcher.accept(token)).toBe(true);
          matcher.fillMask(mask);
        }
        return cutMasks() - before;
      });
    };
    for (const time of ['first', 'again']) {
      const [begin, ref, , note] = cutsOfParts();
      expect(begin! + ref!, time).toBeGreaterThan(0);
      expect(note, time).toBe(0);
    }
  });

  it('finds a token where all work is spent before any is found', async ({ skip }) => {
    const vocabulary = await realVocabulary('llama-bpe');
    if (typeof vocabulary === 'string') return skip(vocabulary);
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const pattern = '\\u0041{0,280}(.{0,280}\\p{L}\\p{L}(?:))?中(\\w..é)*';
    const json = { type: 'string', maxLength: 29, pattern };
    const matcher = (await compileConstraint({ json }, vocabulary)).createMatcher();
    const tokens = [70478, 135, 237, 34, 49, 47, 16, 10, 42802, 77, 68, 6, 9265, 33, 48, 8, 107476, 2, 14];
    for (const token of tokens) {
      matcher.forcedTokens();
      matcher.fillMask(mask);
      expect(matcher.accept(token)).toBe(true);
    }
    matcher.fillMask(mask);
    expect(mask.some((word) => word !== 0)).toBe(true);
  });

  it('accepts what it allowed where no search could decide', async ({ skip }) => {
    const vocabulary = await realVocabulary('llama-bpe');
    if (typeof vocabulary === 'string') return skip(vocabulary);
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    const pattern = '(\\p{L}{0,280}[^"x]{2,5}[^"x]+){3,}中{3,}';
    const json = {
      type: 'object',
      properties: { a: { type: 'string', maxLength: 34, pattern }, foo: {} },
      required: ['foo'],
    };
    const structural_tag = JSON.stringify({
      type: 'structural_tag',
      format: {
        type: 'tag',
        begin: '<think>',
        content: { type: 'json_schema', json_schema: json },
        end: '</think>',
      },
    });
    const options = { structural_tag, disable_any_whitespace: true };
    const matcher = (await compileConstraint(options, vocabulary)).createMatcher();
    const tokens = [14023, 771, 7457, 57793, 59628, 23654, 24170, 10453, 20, 89440, 89305];
    for (const token of [undefined, ...tokens]) {
      if (token !== undefined) expect(matcher.accept(token)).toBe(true);
      matcher.forcedTokens();
      matcher.fillMask(mask);
    }
    const allowed = Array.from({ length: 256 }, (_, token) => token).filter((token) =>
      isAllowed(mask, token),
    );
    expect(allowed.length).toBeGreaterThan(0);
    expect(allowed.filter((token) => !matcher.clone().accept(token))).toEqual([]);
  });

  const walkTo = async (json: Readonly<Record<string, unknown>>, parts: readonly string[]) => {
    const vocabulary = await realVocabulary('llama-bpe');
    if (typeof vocabulary === 'string') return vocabulary;
    const matcher = (await compileConstraint({ json }, vocabulary)).createMatcher();
    const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
    for (const token of parts.flatMap((part) => [...vocabulary.tokenize(part)])) {
      matcher.fillMask(mask);
      expect(matcher.accept(token)).toBe(true);
    }
    matcher.fillMask(mask);
    const characters = [...Array(94).keys()].map((at) => String.fromCharCode(33 + at));
    const allowed = characters.filter((character) => isAllowed(mask, vocabulary.tokenize(character)[0]!));
    return {
      allowed,
      takes: (character: string) => matcher.clone().accept(vocabulary.tokenize(character)[0]!),
    };
  };

  it('tells letters apart where it allows some of them only as nothing else is left', async ({ skip }) => {
    const pattern = '(\\s+)(\\p{L}[^"x]{0,280}[a-z]{0,280}[0-9a-f]){3,}("{2,5}"*?[0-9a-f]{3,})(a*?)*';
    const reached = await walkTo({ type: 'string', maxLength: 16, pattern }, ['"', '; Ge', 'ilelf']);
    if (typeof reached === 'string') return skip(reached);
    expect(reached.allowed).toContain('a');
    expect(reached.allowed.filter((character) => !reached.takes(character))).toEqual([]);
  });

  it('looks longer for a way on where short searches found none', async ({ skip }) => {
    // Three characters are left: there is room for a quotation mark, but not for two letters and two of them.
    const pattern = '"*\\p{L}{2,5}(""+(?:;|$){2,5}[^"x]?)|(?:)\\u0041{3,}(?:;|$)*(?:;|$){2,5}';
    const parts = ['".', 'ols', 'D', '088', ' marvelous', 'SID', '\\', '"'];
    const reached = await walkTo({ type: 'string', maxLength: 25, pattern }, parts);
    if (typeof reached === 'string') return skip(reached);
    expect(reached.allowed).toEqual(['\\']);
  });

  it('begins another text where no search can tell whether there is one', async ({ skip }) => {
    const pattern = '(é{3,}(?:;|$).){3,}(?:;|$)\\u0041+|\\p{L}{2,5}[a-z]*? \\p{L}';
    const items = { type: 'string', maxLength: 36, pattern };
    const json = { type: 'array', items, minItems: 2, uniqueItems: true };
    const words = ['["$', ' certainly', 'six', 'icits', 'MJ', " +'", ' XM', 'ونية', '闻', ' luk', '"'];
    const ended = await walkTo(json, words);
    if (typeof ended === 'string') return skip(ended);
    expect(ended.allowed).toEqual([',']);
    expect(((await walkTo(json, [...words, ','])) as typeof ended).allowed).toEqual(['"']);
  });
});
