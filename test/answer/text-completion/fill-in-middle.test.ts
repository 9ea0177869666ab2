/** A text before and one after -> the tokens of a prompt that asks for the middle. */
import { expect, it } from 'vitest';
import { fillInMiddle } from '../../../src/answer/text-completion/fill-in-middle.ts';
import type { Tokenizer } from '../../../src/engine/tokenizer/index.ts';
import { bytes, byteTokenizer } from '../../fakes/byte-tokenizer.ts';

/** Bytes, then tokens of their own for some texts. */
function withTokens(...texts: string[]): Tokenizer {
  const plain = byteTokenizer;
  const own = texts.map((text) => new TextEncoder().encode(text));
  return {
    ...plain,
    vocabSize: plain.vocabSize + own.length,
    bytesOf: (id) => own[id - plain.vocabSize] ?? plain.bytesOf(id),
  };
}

it.each([
  ['Qwen', ['<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>'], [0, 2, 1]],
  ['DeepSeek', ['<｜fim▁hole｜>', '<｜fim▁begin｜>', '<｜fim▁end｜>'], [1, 0, 2]],
  ['StarCoder', ['<fim_prefix>', '<fim_middle>', '<fim_suffix>', '<fim_pad>'], [0, 2, 1]],
])('of %s', async (_, texts, [prefix, suffix, middle]) => {
  const tokenizer = withTokens(...texts);
  const first = byteTokenizer.vocabSize;
  const ids = await fillInMiddle(tokenizer, 'a<fim_prefix>', 'b', Int32Array.of(7));
  expect([...ids]).toEqual([
    7,
    first + prefix!,
    ...bytes('a<fim_prefix>'),
    first + suffix!,
    ...bytes('b'),
    first + middle!,
  ]);
});

it('is UNSUPPORTED without all three', async () => {
  const tokenizer = withTokens('<|fim_prefix|>', '<|fim_suffix|>', '<fim_middle>');
  await expect(fillInMiddle(tokenizer, 'a', 'b', new Int32Array())).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    param: 'suffix',
  });
});
