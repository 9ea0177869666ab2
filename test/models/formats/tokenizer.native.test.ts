/** The tokenizer's contract on every engine, and that both encode alike. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { detokenize, type Tokenizer } from '../../../src/engine/tokenizer/tokenizer.ts';
import { loadGguf } from '../../../src/models/formats/gguf.ts';
import type { LoadedModel } from '../../../src/models/formats/model.ts';
import { loadOnnx } from '../../../src/onnx/model.ts';
import { closeAll, EMBEDDED, ENGINES, type EngineName, modelOf, questions } from './engines.ts';

const TEXTS = [
  '',
  ' ',
  'Hello, world!',
  "I'll say it's DON'T",
  'tabs\tand\n\nlines \r\n end  ',
  '12345 67.8',
  'Ünïcödé — 日本語 🎉👩‍👩‍👧',
  'a\u0000b\u0301 \u00a0x',
  '<|im_start|>user\nhi<|im_end|>\n<tool_call>{"a": 1}</tool_call>',
  ...questions(40),
];
const loaded = new Map<EngineName, LoadedModel>();

async function load(engine: EngineName): Promise<LoadedModel> {
  const path = modelOf(engine);
  const model =
    engine === 'GGUF'
      ? await loadGguf({ path, gpu: false })
      : await loadOnnx({ path, gpu: false, threads: 1 });
  loaded.set(engine, model);
  return model;
}

afterAll(async () => {
  for (const model of loaded.values()) await model.close();
  await closeAll();
});

const KINDS = ENGINES.slice(0, 2); // the graphs share one tokenizer

describe.each(KINDS)('the tokenizer of %s', (engine) => {
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    tokenizer = (await load(engine)).tokenizer;
  });

  it.each([true, false])(
    'gives back every text, byte for byte (special tokens parsed: %s)',
    async (parseSpecial) => {
      for (const text of TEXTS) {
        const ids = await tokenizer.encode(text, { addSpecial: false, parseSpecial });
        expect(detokenize(tokenizer, ids, false)).toBe(text);
      }
    },
  );

  it('reads special tokens as such only when it is told to', async () => {
    const text = '<|im_start|>user';
    const parsed = await tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
    const plain = await tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
    expect(tokenizer.isSpecial(parsed[0]!)).toBe(true);
    expect(Array.from(plain).some((id) => tokenizer.isSpecial(id))).toBe(false);
    expect(plain.length).toBeGreaterThan(parsed.length);
  });

  it('knows the end tokens and their texts', () => {
    expect(tokenizer.endIds.has(tokenizer.eosId)).toBe(true);
    expect([...tokenizer.endIds].every((id) => tokenizer.isSpecial(id))).toBe(true);
    expect(tokenizer.eosText).toBe('<|im_end|>');
    expect(tokenizer.bosText).toBe('<|endoftext|>');
  });

  it('has bytes for its tokens, and none for others', () => {
    expect(tokenizer.bytesOf(-1)).toHaveLength(0);
    expect(tokenizer.bytesOf(tokenizer.vocabSize)).toHaveLength(0);
    const single = new Set<number>();
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const bytes = tokenizer.bytesOf(id);
      if (bytes.length === 1) single.add(bytes[0]!);
    }
    expect(single.size).toBe(256); // every text can be written
  });

  it('has a vocabulary for grammars with the same bytes', async () => {
    const vocabulary = await loaded.get(engine)!.vocabulary();
    expect(vocabulary.size).toBe(tokenizer.vocabSize);
    expect(vocabulary.eosTokenIds).toContain(tokenizer.eosId);
    for (const id of vocabulary.eosTokenIds) expect(tokenizer.endIds.has(id)).toBe(true);
    for (let id = 0; id < tokenizer.vocabSize; id++)
      if (!tokenizer.isSpecial(id) && tokenizer.bytesOf(id).length > 0)
        expect(vocabulary.bytes(id)).toEqual(Uint8Array.from(tokenizer.bytesOf(id)));
  });
});

describe.skipIf(KINDS.length < 2)('both tokenizers', () => {
  it('encode alike, and agree on every token', async () => {
    const [gguf, onnx] = KINDS.map((engine) => loaded.get(engine)!.tokenizer) as [Tokenizer, Tokenizer];
    expect(onnx.vocabSize).toBe(gguf.vocabSize);
    expect(onnx.endIds).toEqual(gguf.endIds);
    for (let id = 0; id < gguf.vocabSize; id++) {
      expect(Uint8Array.from(onnx.bytesOf(id))).toEqual(Uint8Array.from(gguf.bytesOf(id)));
      expect(onnx.isSpecial(id)).toBe(gguf.isSpecial(id));
    }
    for (const text of TEXTS)
      for (const parseSpecial of [true, false])
        for (const addSpecial of [true, false]) {
          const options = { addSpecial, parseSpecial };
          expect(await onnx.encode(text, options), JSON.stringify(text)).toEqual(
            await gguf.encode(text, options),
          );
        }
  });

  it('of models know the paths of nothing else', () => {
    expect(loaded.get('GGUF')!.files).toEqual([EMBEDDED]);
    expect(loaded.get(KINDS[1]!)!.files).toEqual([expect.stringMatching(/onnx[\\/]model\.onnx$/)]);
  });
});
