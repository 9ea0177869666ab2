// Settings of a job, an age of trajectories, a seed -> how often stories are about the animal that was asked for, step by step.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../../dist/index.js';
import { trainLoop } from '../../../dist/rl/public.js';

const ANIMALS = ['dog', 'cat', 'fox', 'bear', 'lion', 'horse', 'sheep', 'rabbit'];
/** Never trained on. */
const HELD_OUT = ['wolf', 'cow'];
/** A sentence shorter than this is brief. */
const BRIEF = 60;
const STEPS = 24;

async function rollout(animal, { record, signal }) {
  const recorder = record();
  const messages = [{ role: 'user', content: `Tell me a ${animal} story.` }];
  const request = { messages, stop: '.', max_tokens: 32, stream: false };
  const { choices } = await recorder.service.createCompletion(request, { signal });
  const content = choices[0].message.content ?? '';
  const reward = content.includes(` ${animal} named`) ? 1 : 0;
  return recorder.finish({ reward, metrics: { animal: reward, brief: content.length < BRIEF ? 1 : 0 } });
}

/** Trains the embedded model. Gives the evaluations, and how many steps old trajectories were in the last quarter of the run. */
export async function learn({ config, maxStale = 0, seed }) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-algorithms-'));
  const runtime = await createRuntime({ home, gpu: false, threads: 1 });
  const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const ages = [];
  const { evaluations } = await trainLoop({
    service: runtime,
    model: id,
    tasks: ANIMALS,
    rollout,
    evaluate: { tasks: HELD_OUT, every: 4, groupSize: 16 },
    until: { steps: STEPS },
    groupsPerStep: ANIMALS.length,
    groupSize: 8,
    maxStale,
    config: { learning_rate: 5e-4, ...config },
    seed,
    onEvent: ({ type, step, metrics }) => {
      if (type === 'step' && step > 0.75 * STEPS) ages.push(metrics['train/stale_steps'] ?? 0);
    },
  });
  await runtime.close();
  fs.rmSync(home, { recursive: true });
  const age = ages.reduce((sum, one) => sum + one, 0) / ages.length;
  return { points: evaluations.map(({ step, reward }) => ({ step, value: reward })), age };
}
