/** Jobs on a model with experts whose sampler rounds its cache: replayed, the trainer weighs what was sampled. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ChatCompletion, TrajectoryGroup } from '../../src/protocol/index.ts';
import { record } from '../../src/rollout/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime.ts';
import { architectureFiles } from '../architectures/files.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-routing-'));
const base_model = 'sampler';
let runtime: Runtime;
beforeAll(async () => {
  const models = {
    sampler: { path: architectureFiles(['qwen3moe'])['qwen3moe']!, cacheType: 'q4_0' as const },
  };
  runtime = await createRuntime({ home, models, gpu: false, threads: 1, contextSize: 256 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

it('probabilities agree better than with the choice of the trainer', async () => {
  const { id } = await runtime.models.create({ base_model });
  const request = {
    messages: [{ role: 'user' as const, content: 'Tell me a story.' }],
    max_tokens: 48,
    ignore_eos: true,
  };
  const attempts = [0, 1, 2, 3].map(async (reward) => {
    const recorder = record(runtime, { model: id, seed: reward, routedExperts: true });
    const { choices } = (await recorder.service.createCompletion(request)) as ChatCompletion;
    expect('routed_experts' in choices[0]!).toBe(false); // the client has not asked for them
    return recorder.finish({ reward });
  });
  const group: TrajectoryGroup = { trajectories: await Promise.all(attempts) };
  const corr: Record<string, number> = {};
  for (const routing of ['own', 'replay'] as const) {
    const model = await runtime.models.create({ base_model });
    const job = await runtime.train({
      model_id: model.id,
      trajectory_groups: [group],
      experimental_config: { routing },
    });
    const { metrics, step } = await job.done;
    expect(step).toBe(1);
    corr[routing] = metrics['train/probs_corr']!;
  }
  expect(1 - corr['replay']!).toBeLessThan((1 - corr['own']!) / 2);
});
