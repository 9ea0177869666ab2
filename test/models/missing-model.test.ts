/** References that name nothing -> what the error says that they may have meant. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { missingModel } from '../../src/models/missing-model.ts';

const NAMES = ['onpolicy-tiny', 'small'];

it.each([
  ['./nope.gguf', `no such file: ${path.resolve('nope.gguf')}`],
  ['nope.gguf', `no such file: ${path.resolve('nope.gguf')}`],
  ['/a/b', `no such file: ${path.resolve('/a/b')}`],
  ['models/a/b', `no such file: ${path.resolve('models/a/b')}`],
  ['onpolicy-tinny', 'no model has this name, got "onpolicy-tinny"; did you mean onpolicy-tiny?'],
  ['Small', 'no model has this name, got "Small"; did you mean small?'],
  ['Qwen/Qwen3-8B-GGUF', 'no such file, got "Qwen/Qwen3-8B-GGUF"; did you mean hf:Qwen/Qwen3-8B-GGUF?'],
  [
    'Qwen/Qwen3-8B-GGUF:Q8_0',
    'no such file, got "Qwen/Qwen3-8B-GGUF:Q8_0"; did you mean hf:Qwen/Qwen3-8B-GGUF:Q8_0?',
  ],
  ['./smal.gguf', `no such file: ${path.resolve('smal.gguf')}; did you mean ./small.gguf?`, './small.gguf'],
  ['gpt-4o', 'expected one of the names onpolicy-tiny, small, an hf: URI or a path of a model, got "gpt-4o"'],
])('%s', (reference, reason, ...names) => {
  expect(missingModel('model', reference, [...NAMES, ...names])).toMatchObject({
    code: 'MODEL_NOT_FOUND',
    param: 'model',
    message: `model: ${reason}`,
  });
  // As the default model, which its own path names: never "did you mean" itself.
  expect(missingModel('model', reference, [reference, ...NAMES, ...names]).message).toBe(`model: ${reason}`);
});
