/** Ambiguous grammars, left and hidden left recursion among them: their language against a list of its texts. */
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const eos = vocabulary.eosTokenIds[0]!;
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
const longest = 5;
const names = ['x', 'y', 'z'];

/** Repetition signs of each notation -> the minimum and maximum number of repetitions. */
const repeats: Record<string, Record<string, [number, number]>> = {
  lark: { '': [1, 1], '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] },
  gbnf: {
    '': [1, 1],
    '*': [0, Infinity],
    '{2}': [2, 2],
    '{1,3}': [1, 3],
    '{0,2}': [0, 2],
    '{999}': [999, 999],
  },
};

interface Part {
  symbol: string;
  repeat: string;
}
type Rules = Record<string, Part[][]>;

/** Whole numbers below a bound, from a seed. */
function randomSource(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % bound;
  };
}

function randomRules(seed: number, signs: string[]): Rules {
  const random = randomSource(seed);
  const symbols = ['a', 'b', ...names, ...names];
  const part = (): Part => ({
    symbol: symbols[random(symbols.length)]!,
    repeat: ['', ...signs][random(signs.length + 1)]!,
  });
  const option = (): Part[] => Array.from({ length: 1 + random(4) }, part);
  return Object.fromEntries(
    names.map((name) => [name, [option(), option(), [{ symbol: random(2) ? 'a' : 'b', repeat: '' }]]]),
  );
}

function join(left: Set<string>, right: Set<string>): Set<string> {
  const joined = new Set<string>();
  for (const one of left)
    for (const other of right) if (one.length + other.length <= longest) joined.add(one + other);
  return joined;
}

/** All texts of the first rule up to the longest length. */
function languageOf(rules: Rules, counts: Record<string, [number, number]>): Set<string> {
  const texts = new Map<string, Set<string>>([
    ['a', new Set(['a'])],
    ['b', new Set(['b'])],
    ...names.map((name): [string, Set<string>] => [name, new Set()]),
  ]);
  const textsOf = ({ symbol, repeat }: Part): Set<string> => {
    const once = texts.get(symbol)!;
    const [least, most] = counts[repeat]!;
    let all = new Set(['']);
    for (let count = 0; count < most; count++) {
      const more = join(all, once);
      if (count >= least && [...more].every((text) => all.has(text))) break;
      all = count < least ? more : new Set([...all, ...more]);
    }
    return all;
  };
  for (let changed = true; changed; ) {
    changed = false;
    for (const name of names)
      for (const option of rules[name]!) {
        const known = texts.get(name)!;
        const before = known.size;
        for (const text of option.map(textsOf).reduce(join)) known.add(text);
        changed ||= known.size > before;
      }
  }
  return texts.get(names[0]!)!;
}

const allTexts = [''];
for (let i = 0; allTexts[i]!.length < longest; i++) allTexts.push(`${allTexts[i]}a`, `${allTexts[i]}b`);

describe.each(Object.entries(repeats))('random ambiguous grammars in %s', (notation, counts) => {
  const [start, colon] = notation === 'gbnf' ? ['root', ' ::='] : ['start', ':'];
  it.each(Array.from({ length: 12 }, (_, i) => i))(
    'take their texts and no others, part %i',
    async (part) => {
      for (let seed = part * 20 + 1; seed <= part * 20 + 20; seed++) {
        const rules = randomRules(seed, Object.keys(counts));
        const line = (name: string) =>
          `${name}${colon} ${rules[name]!.map((option) =>
            option
              .map(({ symbol, repeat }) => (names.includes(symbol) ? symbol : `"${symbol}"`) + repeat)
              .join(' '),
          ).join(' | ')}`;
        const grammar = `${start}${colon} x\n${names.map(line).join('\n')}`;
        const language = languageOf(rules, counts);
        const constraint = await compileConstraint({ grammar }, vocabulary).catch(() => undefined);
        const taken = allTexts.filter(
          (text) => constraint && accepts(constraint.createMatcher(), Buffer.from(text), mask, eos),
        );
        expect(taken, grammar).toEqual(allTexts.filter((text) => language.has(text)));
      }
    },
  );
});
