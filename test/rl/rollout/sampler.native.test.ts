/** A loop whose rollouts are sampled by two servers of this library, through vLLM's endpoints. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { connect, createPool, createRuntime, serve } from '../../../src/index.ts';
import type { LoopContext } from '../../../src/rl/rollout/loop-options.ts';
import { trainLoop } from '../../../src/rl/rollout/train-loop.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-sampler-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function rollout(animal: string, { record, attempt, signal }: LoopContext) {
  const recorder = record();
  const messages = [{ role: 'user' as const, content: `Tell me a ${animal} story.` }];
  await recorder.service.createCompletion({ messages, max_tokens: 8, stream: false }, { signal });
  return recorder.finish({ reward: attempt });
}

it('samples at two servers and trains here: each step goes there, and the log-probabilities agree', async () => {
  const home = path.join(folder, 'home');
  await using runtime = await createRuntime({ home, gpu: false, threads: 1 });
  await using other = await createRuntime({ home: path.join(folder, 'other'), gpu: false, threads: 1 });
  await using third = await createRuntime({ home: path.join(folder, 'third'), gpu: false, threads: 1 });
  const others = [other, third];
  const options = { tokens: ['secret'], adapterFolders: [home] };
  const servers = await Promise.all(others.map((one) => serve(one, options)));
  await using sampler = createPool(servers.map(({ url }) => connect({ baseUrl: url, apiKey: 'secret' })));
  const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const correlations: number[] = [];
  const { step } = await trainLoop({
    service: runtime,
    model: id,
    sampler,
    samplerModel: 'onpolicy-tiny',
    maxStale: 1,
    tasks: ['dog', 'cat'],
    rollout,
    until: { steps: 3 },
    groupsPerStep: 2,
    groupSize: 2,
    config: { learning_rate: 1e-3 },
    onEvent: (event) => correlations.push(event.metrics['train/probs_corr'] ?? 0),
  });
  expect(step).toBe(3);
  expect(Math.min(...correlations)).toBeGreaterThan(0.9);
  /** The policy that sampled each trajectory, under which it is filed. */
  const filed: number[] = [];
  for await (const { step: sampledAt, trajectory } of runtime.runs.trajectories(id, 'train')) {
    expect(sampledAt).toBe(trajectory.initial_policy_version);
    filed.push(sampledAt);
  }
  expect(filed).toHaveLength(12);
  // Each step trains on four trajectories, of its own policy or the one before.
  for (const [i, sampledAt] of filed.entries()) expect([0, 1]).toContain(Math.floor(i / 4) - sampledAt);
  expect(runtime.stats().generatedTokens).toBe(3); // the probe of each checkpoint
  for (const one of others) {
    expect(one.adapters.list().map(({ name }) => name)).toEqual([`${id}-step-3`]);
    expect(one.stats().generatedTokens).toBeGreaterThan(0);
  }
  const request = { messages: [{ role: 'user' as const, content: 'Hi' }], temperature: 0, max_tokens: 8 };
  const here = await runtime.createCompletion({ ...request, model: id, stream: false });
  const there = await sampler.createCompletion({ ...request, model: `${id}-step-3`, stream: false });
  expect(there.choices[0]?.message.content).toBe(here.choices[0]?.message.content);
  await Promise.all(servers.map((server) => server.close()));
});
