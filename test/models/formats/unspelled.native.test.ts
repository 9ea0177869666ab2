/** A vocabulary that has neither all characters nor bytes: texts that it cannot spell are refused by field, and the engine goes on. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { writeTinyModel } from '../../rl/tiny-model.ts';

const TOKENS = ['<unk>', '<s>', '</s>', '▁', ...'abcdefghijklmnopqrstuvwxyz.', '▁price'];
const TEMPLATE = '{% for message in messages %}{{ message.content }}{% endfor %}';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-unspelled-'));
let runtime: Runtime;

beforeAll(async () => {
  const model = path.join(folder, 'model.gguf');
  const sizes = { width: 64, hidden: 64, heads: 1, kvHeads: 1, headSize: 64, layers: 1 };
  await writeTinyModel(model, {
    ...{ architecture: 'llama', type: 'f32', vocabularySize: TOKENS.length, ...sizes },
    tokenizer: [
      ['tokenizer.ggml.model', 'llama'],
      ['tokenizer.ggml.tokens', TOKENS],
      ['tokenizer.ggml.scores', Float32Array.from(TOKENS, (_, i) => -i)],
      ['tokenizer.ggml.token_type', Int32Array.from(TOKENS, (_, i) => (i === 0 ? 2 : i < 3 ? 3 : 1))],
      ['tokenizer.chat_template', TEMPLATE],
    ],
  });
  runtime = await createRuntime({ model, gpu: false, kvTokens: 1024, threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

const refused = (param: string) => ({
  name: 'OnpolicyError',
  code: 'UNSUPPORTED',
  param,
  message: `${param}: the vocabulary of this model cannot spell "€" (U+20AC)`,
});
const chat = (content: string, more = {}) =>
  runtime.createCompletion({ messages: [{ role: 'user', content }], max_completion_tokens: 2, ...more });

describe('a text that the vocabulary cannot spell', () => {
  it.each<[string, (text: string) => Promise<unknown>]>([
    ['text', (text) => runtime.tokenize(text)],
    ['messages', (text) => chat(text)],
    ['prediction', (text) => chat('price', { prediction: { type: 'content', content: text } })],
    ['prompt', (text) => runtime.createTextCompletion({ prompt: text, max_tokens: 2 })],
    ['prompt.1', (text) => runtime.createTextCompletion({ prompt: ['a', text], max_tokens: 2 })],
  ])('is refused by name: %s', async (param, ask) => {
    for (const text of ['price €', `${'price '.repeat(2000)}€`])
      await expect(ask(text)).rejects.toMatchObject(refused(param));
    await ask('price');
  });

  it('disturbs no other request', async () => {
    const all = await Promise.allSettled([chat('price'), chat('a € b'), chat('a b'), chat('😀')]);
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
  });
});
