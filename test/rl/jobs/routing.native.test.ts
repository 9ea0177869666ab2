/** Jobs on a model with experts: they are replayed as sampled, and trained. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { ChatCompletion, RuntimeOptions, TrajectoryGroup } from '../../../src/protocol/index.ts';
import { record } from '../../../src/rl/rollout/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { architectureFiles } from '../../architectures/files.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-routing-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const file = architectureFiles(['qwen3moe'])['qwen3moe']!;
const base_model = 'base';
const request = {
  messages: [{ role: 'user' as const, content: 'Tell me a story.' }],
  max_tokens: 48,
  ignore_eos: true,
};
const open = (name: string, cacheType: 'f32' | 'q4_0', options: RuntimeOptions = {}): Promise<Runtime> =>
  createRuntime({
    home: path.join(folder, name),
    models: { [base_model]: { path: file, cacheType } },
    ...{ gpu: false, threads: 1, contextSize: 256 },
    ...options,
  });

/** Answers with different rewards. */
async function sample(runtime: Runtime, model: string): Promise<TrajectoryGroup> {
  const attempts = [0, 1, 2, 3].map(async (reward) => {
    const recorder = record(runtime, { model, seed: reward, routedExperts: true });
    const { choices } = (await recorder.service.createCompletion(request)) as ChatCompletion;
    expect('routed_experts' in choices[0]!).toBe(false); // the client has not asked for them
    return recorder.finish({ reward });
  });
  return { trajectories: await Promise.all(attempts) };
}

it('replayed, what a sampler with a rounded cache has sampled is as probable for the trainer', async () => {
  await using runtime = await open('rounded', 'q4_0');
  const { id } = await runtime.models.create({ base_model });
  const group = await sample(runtime, id);
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

it('experts are trained, saved, served and trained further', async () => {
  const modules = ['ffn_gate_exps', 'ffn_down_exps'];
  await using runtime = await open('trained', 'f32', { training: { modules, rank: 2 } });
  const { id } = await runtime.models.create({ base_model });
  const asked = { ...request, temperature: 0, logprobs: true, stream: false as const };
  const answers: string[] = [];
  for (const step of [1, 2]) {
    const group = await sample(runtime, id);
    const job = await runtime.train({
      model_id: id,
      trajectory_groups: [group],
      experimental_config: { learning_rate: 1e-2 },
    });
    const result = await job.done;
    expect(result.step).toBe(step);
    expect(result.metrics['train/probs_corr']).toBeGreaterThan(0.9999);
    for (const model of [`${id}@${step - 1}`, id]) {
      const { choices } = await runtime.createCompletion({ ...asked, model });
      answers.push(JSON.stringify(choices[0]!.logprobs));
    }
  }
  expect(answers[1]).toBe(answers[2]); // step 1, with and without its number
  expect(new Set(answers).size).toBe(3);
});
