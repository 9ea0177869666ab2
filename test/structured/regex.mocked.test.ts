import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { compileConstraint, cutMasks } from '../../src/structured/index.ts';
import { testing } from '../addon/testing-addon.ts';
import { accepts, smallVocabulary } from './vocabularies.ts';

vi.mock('../../src/engine/native/grammar-addon.ts', () => import('./testing-grammar.ts'));

const vocabulary = smallVocabulary();
const eos = vocabulary.eosTokenIds[0]!;
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));

/** Expressions full of parts that contain each other, and counts that overlap: simplification during compilation. */
const expression: fc.Arbitrary<string> = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'regex' },
    fc.constantFrom('a', 'b', 'ab', '[ab]', '[^a]', '.', ''),
    fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `${a}${b}`),
    fc.array(tie('expression'), { minLength: 2, maxLength: 4 }).map((parts) => `(?:${parts.join('|')})`),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,3}', '{2,}', '*?', '{1,2}?'),
      )
      .map(([part, count]) => `(?:${part})${count}`),
  ),
})).expression;

/** Every text of up to five letters. */
const TEXTS = Array.from({ length: 6 }, (_, size) =>
  Array.from({ length: 2 ** size }, (_, bits) =>
    Array.from({ length: size }, (_, place) => ((bits >> place) & 1 ? 'b' : 'a')).join(''),
  ),
).flat();

describe('random regular expressions', () => {
  it('take the texts that the RegExp of JavaScript takes, byte by byte and in tokens', async () => {
    await fc.assert(
      fc.asyncProperty(expression, async (regex) => {
        const constraint = await compileConstraint({ regex }, vocabulary);
        const whole = new RegExp(`^(?:${regex})$`, 'u');
        for (const text of TEXTS) {
          const isTaken = whole.test(text);
          const bytes = [...Buffer.from(text)];
          expect(accepts(constraint.createMatcher(), bytes, mask, eos), `bytes of "${text}"`).toBe(isTaken);
          const tokens = vocabulary.tokenize(text);
          expect(accepts(constraint.createMatcher(), tokens, mask, eos), `"${text}"`).toBe(isTaken);
        }
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it('have states that do not multiply with the readings of a text', async () => {
    testing.divideWork(4);
    for (const regex of [
      '(?:a|a{2}|a{1,3}|[ab]{0,40}){0,40}',
      '(?:(?:a*)*|a{0,200}|(?:aa?)+){3,}',
      '(?:.{0,280}|a*){3,}',
    ]) {
      const matcher = (await compileConstraint({ regex }, vocabulary)).createMatcher();
      const before = cutMasks();
      for (let i = 0; i < 100; i++) {
        matcher.fillMask(mask);
        expect(matcher.accept(97)).toBe(true);
      }
      expect(cutMasks() - before, `masks of ${regex} that need more than a quarter of their work`).toBe(0);
    }
    testing.divideWork(1);
  });
});
