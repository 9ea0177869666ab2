/** Models with experts on a GPU: which ones tokens took is recorded and replayed as on the CPU; adapters of experts are refused. */
import { describe, expect, it } from 'vitest';
import { routedExpertIds } from '../../src/protocol/index.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { architectureFiles } from '../architectures/files.ts';
import { drawnExperts } from '../rl/drawn-experts.ts';
import { packSequence } from '../rl/tiny-model.ts';
import { largestDistance, whyNoDevice } from './device.ts';

const why = await whyNoDevice();
const because = why ? ` (skipped: ${why})` : '';

describe.skipIf(why)(`experts on a GPU${because}`, () => {
  const model = architectureFiles(['qwen3moe'])['qwen3moe']!;
  const row = packSequence(Int32Array.from({ length: 40 }, (_, i) => (i * 53 + (i % 7)) % 250));

  it('are recorded', async () => {
    const records: number[][] = [];
    for (const gpu of ['vulkan', false] as const) {
      await using runtime = await createRuntime({ model, gpu, threads: 1, contextSize: 256 });
      const { choices } = await runtime.createCompletion({
        messages: [{ role: 'user', content: 'Tell me of experts.' }],
        max_tokens: 2,
        temperature: 0,
        return_routed_experts: true,
      });
      records.push(Array.from(routedExpertIds(choices[0]!.routed_experts!)));
    }
    const [found, wanted] = records as [number[], number[]];
    const same = found.filter((id, i) => id === wanted[i]).length;
    expect(found.length).toBe(wanted.length);
    expect(same / found.length).toBeGreaterThan(0.9); // a GPU rounds
  });

  it('are replayed', async () => {
    const scores: Float32Array[] = [];
    for (const gpu of ['vulkan', false] as const) {
      await using trainer = await openTrainer({ model, gpu, threads: 1 });
      const routedExperts = drawnExperts(trainer.info, row.tokens.length);
      const { logprobs } = await trainer.forward({ ...row, routedExperts });
      const own = await trainer.forward(row);
      expect(largestDistance(own.logprobs, logprobs)).toBeGreaterThan(0.1);
      scores.push(logprobs);
    }
    expect(largestDistance(scores[0]!, scores[1]!)).toBeLessThan(2e-2);
  });

  it('have no adapters', async () => {
    const opened = openTrainer({ model, gpu: 'vulkan', threads: 1, modules: ['ffn_down_exps'] });
    await expect(opened).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('modules: adapters of experts'),
    });
  });
});
