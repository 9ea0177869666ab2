/** Random phrases and vocabularies: no output holds a phrase, however its tokens spell it, and nothing else is forbidden. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { testing } from '../addon/testing-addon.ts';

const ALPHABET = ['a', 'b', 'ä', ' '];
const text = (most: number) =>
  fc.string({ unit: fc.constantFrom(...ALPHABET), minLength: 1, maxLength: most });
/** Single bytes can spell every text, halves of characters too. */
const BYTES = [...new Set(ALPHABET.flatMap((letter) => [...Buffer.from(letter)]))].map((byte) =>
  Buffer.of(byte),
);

it('a phrase cannot appear, and only its completions are masked', { timeout: 60_000 }, () => {
  const { Sampler, SamplerPlan, TokenTexts } = testing;
  fc.assert(
    fc.property(
      fc.array(text(4), { maxLength: 12 }),
      fc.array(text(5), { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(1000), { minLength: 30, maxLength: 30 }),
      (words, phrases, draws) => {
        const tokens = [...BYTES, ...words.map((word) => Buffer.from(word)), Buffer.alloc(0)];
        const offsets = new Uint32Array(tokens.length + 1);
        for (const [id, bytes] of tokens.entries()) offsets[id + 1] = offsets[id]! + bytes.length;
        const tokenTexts = new TokenTexts(new Uint8Array(Buffer.concat(tokens)), offsets);
        const plan = new SamplerPlan({ vocabSize: tokens.length, bad_words: phrases, tokenTexts });
        const sampler = new Sampler(plan, 1n);
        let output = Buffer.alloc(0);
        for (const draw of draws) {
          const row = sampler.prepare(new Float32Array(tokens.length));
          const holds = tokens.map((token) => {
            const next = Buffer.concat([output, token]);
            return phrases.some((phrase) => next.includes(phrase));
          });
          expect(Array.from(row, (logit) => logit === -Infinity)).toEqual(holds);
          const open = [...row.keys()].filter((id) => !holds[id]);
          const id = open[draw % open.length]!;
          sampler.accept(id);
          output = Buffer.concat([output, tokens[id]!]);
        }
      },
    ),
    { numRuns: 300 },
  );
});
