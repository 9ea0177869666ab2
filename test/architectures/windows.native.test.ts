/** Models with sliding windows -> the same bits alone, in company, and behind a cached prompt that is cut anywhere. */
import { beforeAll, expect, it } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { architectureFiles } from './files.ts';

const NAMES = ['gemma3', 'cohere2', 'gpt-oss'];
let files: Record<string, string>;
beforeAll(() => {
  files = architectureFiles(NAMES, 'q8_0');
}, 120_000);

it.each(NAMES)('%s', async (name) => {
  await using runtime = await createRuntime({
    model: files[name]!,
    gpu: false,
    contextSize: 512,
    maxSequences: 4,
    speculation: false,
  });
  const ask = async (prompt: number[], seed: number, cache_salt: string): Promise<unknown> => {
    const { choices } = await runtime.createTextCompletion({
      prompt,
      seed,
      cache_salt,
      max_tokens: 8,
      ignore_eos: true,
      logprobs: 1,
    });
    return [choices[0]!.text, choices[0]!.logprobs!.token_logprobs];
  };
  const tokens = (seed: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => 5 + ((seed * 7919 + i * i * 31 + i * 7) % 190));
  for (let i = 0; i < 12; i++) {
    const prompt = tokens(i, 60 + ((i * 37) % 150));
    const alone = await ask(prompt, i, `a ${i}`);
    const others = [1, 2, 3].map((k) => ask(tokens(100 * k + i, 30 + k), k, 'others'));
    expect(await ask(prompt, i, `b ${i}`)).toEqual(alone);
    await Promise.all(others);
    expect(await ask(prompt, i, `a ${i}`)).toEqual(alone);
    const cut = [...prompt.slice(0, 20 + 11 * i), ...tokens(i + 50, 20)];
    expect(await ask(cut, i, `a ${i}`)).toEqual(await ask(cut, i, `c ${i}`));
  }
});
