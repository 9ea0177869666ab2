// Expressions with large counts -> mask times along a long text that is inside of the count.
import { documentsOf, firstWalks } from './walks.mjs';

const words = 'the quick brown fox jumps over lazy dogs and cats in wide green fields near old towns '.repeat(
  50,
);
const json = (spec, text) => ({ kind: 'json', spec, cases: [{ valid: true, text: JSON.stringify(text) }] });
const regex = (spec, text) => ({ kind: 'regex', spec, cases: [{ valid: true, text }] });

const GROUPS = {
  'regex [a-z ]{1,5000}': regex('[a-z ]{1,5000}', words),
  'regex ([A-Za-z0-9+/]{4}){0,1000}': regex(
    '([A-Za-z0-9+/]{4}){0,1000}',
    'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0'.repeat(90),
  ),
  'string with maxLength 20000': json({ type: 'string', maxLength: 20_000 }, words),
  'string with pattern ^([a-z]{1,12} ?){1,900}$': json(
    { type: 'string', pattern: '^([a-z]{1,12} ?){1,900}$' },
    words.trim(),
  ),
};

/** Returns the microseconds of each mask, by the name of the expression. Each begins with a new vocabulary. */
export async function measureCounts({ grammar, readVocabulary, native }) {
  const times = {};
  for (const [name, group] of Object.entries(GROUPS)) {
    const vocabulary = await readVocabulary();
    const [{ documents }] = await firstWalks({ grammar, vocabulary, groups: [group], native });
    const [ids] = documentsOf(grammar, vocabulary, group);
    if (documents[0].length !== ids.length) throw new Error(`${name}: its text was refused`);
    times[name] = documents[0].sort((a, b) => a - b);
  }
  return times;
}
