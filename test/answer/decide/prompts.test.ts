/** Questions in a frame -> their tokens are those of the whole text, however few texts are encoded. */
import { expect, it } from 'vitest';
import { FramedPrompts } from '../../../src/answer/decide/prompts.ts';
import type { RunningModel } from '../../../src/models/index.ts';

const FRAME = { before: 'The state.\n\n', behind: ' end', addSpecial: true };

/** A model whose tokenizer has a token for each match, and notes the texts that it encodes. */
function open(pattern: RegExp) {
  const encoded: string[] = [];
  const encode = async (text: string, { addSpecial }: { addSpecial: boolean }): Promise<Int32Array> => {
    encoded.push(text);
    const ids = [...text.matchAll(pattern)].map(
      ([token]) => [...token].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) & 0xffff,
    );
    return Int32Array.from(addSpecial ? [1, ...ids] : ids);
  };
  return { encoded, model: { tokenizer: { encode } } as unknown as RunningModel, encode };
}

/** Tokens of two tokenizers: letters, and letters where line breaks and the letter behind them are one token. */
const APART = /./gs;
const JOINED = /\n+\w?|[^\n]/g;

it.each([
  ['a single question is encoded once', APART, 1, 1],
  ['two questions: the first whole, then the input and both ends', APART, 2, 4],
  ['each further one costs its own end', APART, 5, 7],
  ['if the input ends within a token, each is encoded whole', JOINED, 5, 7],
])('%s', async (_, pattern, count, encodings) => {
  const { model, encoded, encode } = open(pattern);
  const prompts = new FramedPrompts(model, FRAME, false);
  const questions = Array.from({ length: count }, (_one, i) => `Is it ${i}?`);
  const found: Int32Array[] = [];
  for (const question of questions) found.push((await prompts.of('predicate', question)).ids);
  expect(encoded).toHaveLength(encodings);
  for (const [i, question] of questions.entries())
    expect(found[i]).toEqual(
      await encode(FRAME.before + question + FRAME.behind, { addSpecial: FRAME.addSpecial }),
    );
});

it('says where the input ends if the cache is saved there', async () => {
  for (const needsPlaces of [true, false]) {
    const { model } = open(APART);
    const prompts = new FramedPrompts(model, FRAME, needsPlaces);
    for (const kind of ['predicate', 'predicate', 'choice 1'])
      expect((await prompts.of(kind, 'Is it?')).places).toEqual(needsPlaces ? [FRAME.before.length + 1] : []);
  }
});

it('an input that the vocabulary cannot spell is the error of its field, a question is not', async () => {
  const { model } = open(APART);
  const { encode } = model.tokenizer;
  Object.assign(model.tokenizer, {
    encode: async (text: string, options: { addSpecial: boolean; parseSpecial: boolean }) => {
      if (/[äö]/.test(text)) throw new Error(`no token for ${text}`);
      return await encode(text, options);
    },
  });
  const ofInput = new FramedPrompts(model, { ...FRAME, before: 'ä' }, false);
  await expect(ofInput.of('predicate', 'Is it?')).rejects.toMatchObject({ param: 'messages' });
  const ofQuestion = new FramedPrompts(model, FRAME, false);
  await expect(ofQuestion.of('predicate', 'ö?')).rejects.not.toHaveProperty('param', 'messages');
});
