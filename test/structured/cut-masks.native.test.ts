import { describe, expect, it } from 'vitest';
import { compileConstraint, cutMasks } from '../../src/structured/index.ts';
import { realVocabulary } from './vocabularies.ts';

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
    expect(await walk(kinds, '{"kind":"ochre","ochre_f0":"x y","other":[1,2]}')).toBeGreaterThan(0);
  });
});
