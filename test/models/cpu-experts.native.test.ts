/** The option `cpuExpertLayers` without a GPU: checked all the same, and without effect. */
import { expect, it } from 'vitest';
import { createRuntime } from '../../src/index.ts';
import { architectureFiles } from '../architectures/files.ts';

const open = (path: string, cpuExpertLayers: number | 'all') =>
  createRuntime({ gpu: false, model: { path, cpuExpertLayers }, contextSize: 64, threads: 1 });

it.each([1, 'all'] as const)('is refused for a model without experts: %s', async (cpuExpertLayers) => {
  await using runtime = await open('onpolicy-tiny', cpuExpertLayers);
  await expect(runtime.tokenize('a')).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: 'model.cpuExpertLayers: expected 0, as this model has no experts',
  });
});

it('may be 0 for such a model', async () => {
  await using runtime = await open('onpolicy-tiny', 0);
  expect(await runtime.tokenize('a')).not.toEqual([]);
});

it('changes nothing for a model with experts', async () => {
  const { qwen3moe } = architectureFiles(['qwen3moe']);
  const answers = [0, 'all'] as const;
  const found = await Promise.all(
    answers.map(async (cpuExpertLayers) => {
      await using runtime = await open(qwen3moe!, cpuExpertLayers);
      const { choices } = await runtime.createTextCompletion({
        prompt: 'abc',
        max_tokens: 8,
        temperature: 0,
        logprobs: 0,
      });
      const { cpuExpertLayers: kept, gpuLayers } = runtime.stats().placement[0]!;
      expect({ kept, gpuLayers }).toEqual({ kept: 0, gpuLayers: 0 });
      return choices;
    }),
  );
  expect(found[1]).toEqual(found[0]);
});
