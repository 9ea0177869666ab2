/** A large cache -> memory that it takes: what was written of it. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createRuntime } from '../../src/runtime/runtime.ts';

const MODEL = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const LARGE = 2 ** 29;

it.runIf(process.platform === 'linux')('takes no memory before it is written', async () => {
  const rope = { type: 'linear', factor: 4 } as const;
  const options = { model: { path: MODEL, rope, contextSize: 4096, maxSequences: 256 }, gpu: false } as const;
  const answer = async (kvTokens: number) => {
    await using runtime = await createRuntime({ ...options, model: { ...options.model, kvTokens } });
    const { choices } = await runtime.createCompletion({
      messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
      temperature: 0,
    });
    const { cache } = runtime.loaded()[0]!.memory!;
    return { text: choices[0]!.message.content, cache, resident: process.memoryUsage.rss() };
  };
  const small = await answer(8192);
  const large = await answer(Math.ceil((8192 * LARGE) / small.cache));
  expect(large.text).toBe(small.text);
  expect(large.cache).toBeGreaterThanOrEqual(0.9 * LARGE);
  expect(large.resident - small.resident).toBeLessThan(LARGE / 4);
});
