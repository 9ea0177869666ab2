/** The vocabulary that constraints use of a loaded model, against the one that is read from its file. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { loadGguf } from '../../../src/models/formats/index.ts';
import { compileConstraint, readVocabulary, type Vocabulary } from '../../../src/structured/index.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const MODELS = [
  'models/onpolicy-tiny.gguf',
  ...['llama', 'qwen2', 'qwen3'].map((name) => `test/golden/training/tiny-${name}.gguf`),
];

/** Special tokens show as tokens that no constraint on text allows. */
async function describeVocabulary(vocabulary: Vocabulary): Promise<object> {
  const { size, memoryBytes, eosTokenIds } = vocabulary;
  const bytes = Array.from({ length: size }, (_, id) => Buffer.from(vocabulary.bytes(id)).toString('latin1'));
  const masks = [];
  for (const spec of [{ regex: '(.|\\n)+' }, { json: true }, { choice: ['yes', 'no'] }]) {
    const mask = new Int32Array(Math.ceil(size / 32));
    (await compileConstraint(spec, vocabulary)).createMatcher().fillMask(mask);
    masks.push([...mask]);
  }
  return {
    size,
    memoryBytes,
    eosTokenIds: [...eosTokenIds],
    bytes,
    masks,
    split: [...vocabulary.tokenize('{"a": [1, "é"]}')],
  };
}

it.each(MODELS)('of %s', async (file) => {
  const model = await loadGguf({ path: path.join(root, file), gpu: false });
  const loaded = await describeVocabulary(await model.vocabulary());
  expect(loaded).toEqual(await describeVocabulary(await readVocabulary(path.join(root, file))));
  const { vocabSize, eosId } = model.tokenizer;
  expect(loaded).toMatchObject({ size: vocabSize, eosTokenIds: expect.arrayContaining([eosId]) });
  model.close();
});
