/** The header of a model with random weights that `onpolicy bench --synthetic` writes: it has to pass the checks of every model file. */
import { expect, it } from 'vitest';
import { checkTextModel, parseHeader } from '../../src/engine/gguf/index.ts';

const load = (name: string) => import(new URL(`../../bench/model/${name}.mjs`, import.meta.url).href);

it("a shape with the embedded model's vocabulary is a valid model", async () => {
  const [{ SHAPES, metadataOf, tensorsOf }, { headOf }, { embeddedVocabulary }] = await Promise.all(
    ['shapes', 'gguf', 'vocabulary'].map(load),
  );
  const shape = SHAPES['qwen3-0.6b'];
  const { vocabulary, ids } = embeddedVocabulary(shape.vocabSize);
  const keyValues = metadataOf({ ...shape, ...ids }, 'synthetic', 'q8_0', vocabulary);
  const { head, totalBytes } = headOf(keyValues, tensorsOf(shape, 'q8_0', 1));
  const header = parseHeader('synthetic.gguf', head, totalBytes)!;
  await checkTextModel([header]);
  expect(totalBytes / 1e6).toBeCloseTo(637, -1);
  const texts = [...(vocabulary.get('tokenizer.ggml.tokens') as Buffer).toString().matchAll(/<unused \d+>/g)];
  expect(new Set(texts.map(([text]) => text)).size).toBe(shape.vocabSize - 1024);
  expect(ids).toEqual({ bosId: 956, eosId: 958, padId: 956 });
});
