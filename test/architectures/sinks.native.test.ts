/** Attention with sinks (gpt-oss): a token of an answer -> the log-probability that it has as a token of a prompt. */
import { beforeAll, expect, it } from 'vitest';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { architectureFiles } from './files.ts';

const ROUNDING = 1e-4;
let files: Record<'f32' | 'q8_0', string>;
beforeAll(() => {
  files = {
    f32: architectureFiles(['gpt-oss'])['gpt-oss']!,
    q8_0: architectureFiles(['gpt-oss'], 'q8_0')['gpt-oss']!,
  };
}, 60_000);

/** Differences of each token, in answers to prompts within the window and behind it. */
async function differences(path: string): Promise<number[]> {
  const model = { path, cacheType: 'f32' as const };
  const runtime = await createRuntime({
    model,
    gpu: false,
    threads: 1,
    contextSize: 512,
    speculation: false,
  });
  const found: number[] = [];
  for (const length of [20, 70, 150]) {
    const prompt = Array.from({ length }, (_, i) => 97 + ((i * i) % 26));
    const common = { stream: false, return_token_ids: true, temperature: 1, seed: 1 } as const;
    const { choices } = await runtime.createTextCompletion({
      ...common,
      prompt,
      max_tokens: 40,
      ignore_eos: true,
      logprobs: 0,
      cache_salt: 'answer',
    });
    const { token_ids: ids, logprobs } = choices[0]!;
    const whole = await runtime.createTextCompletion({
      ...common,
      prompt: [...prompt, ...ids!],
      max_tokens: 1,
      prompt_logprobs: 0,
      cache_salt: 'prompt',
    });
    for (const [i, id] of ids!.entries()) {
      const { logprob } = whole.choices[0]!.prompt_logprobs![length + i]![id]!;
      found.push(Math.abs(logprob - logprobs!.token_logprobs[i]!));
    }
  }
  await runtime.close();
  return found;
}

it.each(['f32', 'q8_0'] as const)('is the same with weights of %s', async (type) => {
  const found = await differences(files[type]);
  expect(found).toHaveLength(120);
  expect(Math.max(...found)).toBeLessThan(ROUNDING);
});
