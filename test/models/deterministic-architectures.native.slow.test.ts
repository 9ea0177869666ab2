/** Architectures with experts, windows and states, with `deterministic`: the same bits alone, in company and by any chunks. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, RuntimeOptions } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';
import { architectureFiles } from '../architectures/files.ts';

const ANSWERS = 4;
const COMPANY = 12;

/** Name and type of weights. ONPOLICY_ARCHITECTURES: others, of Q8_0. */
const OTHERS = process.env['ONPOLICY_ARCHITECTURES'];
const MODELS: readonly (readonly [name: string, type: string])[] = OTHERS?.split(',').map((name) => [
  name,
  'q8_0',
]) ?? [
  ['qwen35', 'q8_0'],
  ['qwen35moe', 'q4_k_m'],
  ['qwen3next', 'f32'],
  ['gemma2', 'q8_0'],
  ['gemma4', 'q8_0'],
  ['gpt-oss', 'mxfp4'],
  ['deepseek2', 'q8_0'],
  ['kimi-linear', 'q8_0'],
  ['lfm2moe', 'q4_0'],
  ['nemotron_h', 'q8_0'],
];

const open = (model: string, more: RuntimeOptions = {}): Promise<Runtime> =>
  createRuntime({
    model,
    threads: 1,
    contextSize: 512,
    maxSequences: COMPANY,
    gpu: false,
    deterministic: true,
    ...more,
  });

/** Some are longer than a sliding window. */
const ask = (index: number): ChatCompletionRequest & { stream?: false } => ({
  messages: [{ role: 'user', content: `Question ${index}: ${'why how '.repeat((index * 13) % 31)}?` }],
  max_tokens: 4,
  temperature: 1,
  seed: index,
  ignore_eos: true,
  logprobs: true,
  top_logprobs: 5,
  return_token_ids: true,
});

/** Every number of an answer's tokens. */
const bits = ({ choices }: ChatCompletion): string =>
  JSON.stringify([choices[0]!.token_ids, choices[0]!.logprobs]);

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const answers = async (runtime: Runtime, count: number): Promise<string[]> =>
  (await Promise.all(upTo(count).map((i) => runtime.createCompletion(ask(i))))).map(bits);

describe.skipIf(testing.matmulKernels().length === 0)('deterministic', () => {
  it.each(MODELS)(
    '%s of %s: bit-equal in any company',
    async (name, type) => {
      const { [name]: file } = architectureFiles([name], type);
      const expected: string[] = [];
      {
        await using runtime = await open(file!, { prefixCache: false });
        for (const i of upTo(ANSWERS)) expected.push(bits(await runtime.createCompletion(ask(i))));
        expect(new Set(expected).size).toBe(ANSWERS);
        expect((await answers(runtime, COMPANY)).slice(0, ANSWERS), 'in company').toEqual(expected);
      }
      for (const options of [{ maxBatchTokens: 7 }, { threads: 2 }]) {
        await using runtime = await open(file!, options);
        expect(await answers(runtime, ANSWERS), JSON.stringify(options)).toEqual(expected);
        expect(await answers(runtime, ANSWERS), 'from the cache').toEqual(expected);
      }
    },
    120_000,
  );
});
