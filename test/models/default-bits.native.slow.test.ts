/** Random requests of several kinds of weights -> the same tokens and log-probabilities, to the bit, however a default runtime runs them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type ChatCompletion, createRuntime, type RuntimeOptions } from '../../src/index.ts';
import { testing } from '../addon/testing-addon.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';

/** Requests of each model. `ONPOLICY_REQUESTS=300` for a campaign. */
const COUNT = Number(process.env['ONPOLICY_REQUESTS'] ?? 12);
const EMBEDDED = path.resolve(import.meta.dirname, '../../models/onpolicy-tiny.gguf');
const WORDS = 'alpha beta gamma delta why the a of to question answer number blue red green'.split(' ');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bits-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

let state = 12_345;
function below(count: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * count);
}
const text = (count: number) => Array.from({ length: count }, () => WORDS[below(WORDS.length)]).join(' ');
const prefixes = Array.from({ length: 6 }, () => text(5 + below(90)));

const requests = Array.from({ length: COUNT }, (_, seed) => ({
  messages: [{ role: 'user' as const, content: `${prefixes[below(6)]} ${text(below(30))}` }],
  chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
  max_tokens: 4 + below(60),
  temperature: below(3) === 0 ? 0 : 0.8,
  repetition_penalty: below(4) === 0 ? 1.1 : 1,
  seed,
  ignore_eos: true,
  logprobs: true,
  return_token_ids: true,
}));

const bitsOf = ({ choices: [choice] }: ChatCompletion): string =>
  JSON.stringify([choice!.token_ids, choice!.logprobs!.content!.map(({ logprob }) => logprob)]);

const WAYS: readonly (readonly [string, RuntimeOptions])[] = [
  ['at once', {}],
  ['with preemption', { maxSequences: 16, kvTokens: 2048 }],
  ['in small steps', { maxBatchTokens: 24 }],
  ['with drafts', { speculation: { method: 'ngram' } }],
  ['on one thread', { threads: 1 }],
];

describe.skipIf(testing.matmulKernels().length === 0).each([
  ['the embedded model', null],
  ['Q8_0', { architecture: 'qwen3', type: 'q8_0' }],
  ['Q4_K', { architecture: 'qwen3', type: 'q4_K' }],
  ['BF16', { architecture: 'qwen3', type: 'bf16' }],
  ['F32', { architecture: 'qwen3', type: 'f32' }],
  ['experts', { architecture: 'qwen3moe', type: 'q8_0', experts: 4 }],
  ['sliding windows', { architecture: 'gemma3', type: 'q8_0' }],
] as const)('%s', (name, given) => {
  it('has the bits of each request alone', { timeout: 120_000 + 4000 * COUNT }, async () => {
    const file = given === null ? EMBEDDED : path.join(folder, `${name}.gguf`);
    if (given) await writeTinyModel(file, { vocabularySize: 331, isTied: true, ...given });
    const open = (more: RuntimeOptions) =>
      createRuntime({ model: file, gpu: false, contextSize: 1024, ...more });
    const alone: string[] = [];
    {
      await using runtime = await open({ maxSequences: 1, speculation: false, prefixCache: false });
      for (const request of requests) alone.push(bitsOf(await runtime.createCompletion(request)));
    }
    for (const [way, options] of WAYS) {
      await using runtime = await open(options);
      const answers = await Promise.all(requests.map((request) => runtime.createCompletion(request)));
      const differ = answers.filter((answer, i) => bitsOf(answer) !== alone[i]);
      expect(differ.length, way).toBe(0);
    }
  });
});
