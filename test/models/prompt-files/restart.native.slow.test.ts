/** Models whose prompts are kept on the disk: after a restart they answer as without, and hardly compute. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createRuntime, type ModelOptions, type RuntimeOptions } from '../../../src/index.ts';
import { testing } from '../../addon/testing-addon.ts';
import { architectureFiles } from '../../architectures/files.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-restart-'));
const { qwen35: hybrid } = architectureFiles(['qwen35'], 'q8_0') as { qwen35: string };
const hasKernels = testing.matmulKernels().length > 0;
afterAll(() => fs.rmSync(folder, { recursive: true }));

const PROMPT = Array.from({ length: 300 }, (_, i) => 5 + ((7 * i + (i >> 4)) % 50));

type Answer = {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly cached: number;
};

async function ask(home: string | null, options: RuntimeOptions, salt?: string): Promise<Answer> {
  await using runtime = await createRuntime({
    gpu: false,
    threads: 1,
    contextSize: 512,
    home: home ?? path.join(folder, 'none'),
    diskCacheBytes: home === null ? 0 : 2 ** 26,
    ...options,
  });
  const { choices, usage } = await runtime.createTextCompletion({
    prompt: PROMPT,
    max_tokens: 8,
    ignore_eos: true,
    temperature: 0,
    logprobs: 0,
    return_token_ids: true,
    ...(salt === undefined ? {} : { cache_salt: salt }),
  });
  const [{ token_ids, logprobs } = fail()] = choices;
  return {
    tokens: token_ids!,
    logprobs: logprobs!.token_logprobs as number[],
    cached: usage!.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

function fail(): never {
  throw new Error('no choice');
}

const tiny = (more: Omit<ModelOptions, 'path'>): RuntimeOptions => ({
  model: { path: 'onpolicy-tiny', ...more },
});
const POOL = { kvTokens: 2048 };
/** Cells of its own for each sequence, as the engine's kernels have them. */
const own = (more: Omit<ModelOptions, 'path'>): RuntimeOptions =>
  tiny({ ...more, kernels: 'plain', maxSequences: 2 });

describe.each<[string, RuntimeOptions, number]>([
  ['a transformer with 16 bits, a unified KV cache', tiny({ cacheType: 'f16', ...POOL }), 256],
  ['with 8 bits', tiny({ cacheType: 'q8_0', ...POOL }), 256],
  ['with 32 bits', tiny({ cacheType: 'f32', ...POOL }), 256],
  ['with 16 bits, a non-unified one', own({ cacheType: 'f16' }), 284],
  ['with 8 bits, a non-unified one', own({ cacheType: 'q8_0' }), 284],
  ['deterministic', { ...tiny({}), deterministic: true, maxSequences: 2 }, 284],
  ['a hybrid', { model: { path: hybrid }, maxSequences: 2 }, 284],
  ['a hybrid with 8 bits', { model: { path: hybrid, cacheType: 'q8_0' }, maxSequences: 2 }, 284],
  ['a deterministic hybrid', { model: { path: hybrid }, deterministic: true, maxSequences: 2 }, 284],
])('%s', (name, options, cached) => {
  it.skipIf(options.deterministic && !hasKernels)('answers after a restart as without', async () => {
    const home = path.join(folder, name);
    const without = await ask(null, options);
    const first = await ask(home, options);
    const second = await ask(home, options);
    expect([without.cached, first.cached, second.cached]).toEqual([
      expect.any(Number),
      without.cached,
      cached,
    ]);
    expect([first.tokens, second.tokens]).toEqual([without.tokens, without.tokens]);
    const digits = options.deterministic ? 12 : 1;
    for (const [i, logprob] of without.logprobs.entries())
      for (const answer of [first, second]) expect(answer.logprobs[i]).toBeCloseTo(logprob, digits);
    expect((await ask(home, options, 'salt')).cached).toBe(without.cached);
  });
});
