// A training loop, for a test that kills this process: <home> <steps>. Says when it has sampled for the first time.
import { trainLoop } from '../../../dist/rl/public.js';
import { createRuntime } from '../../../dist/runtime/runtime.js';

const [home, steps] = process.argv.slice(2);
const runtime = await createRuntime({
  home,
  threads: 1,
  prefixCache: false,
  speculation: false,
  training: { rank: 4 },
});
const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny', name: 'm', return_existing: true });
const ANIMALS = ['dog', 'cat', 'fox', 'bear', 'lion'];
await trainLoop({
  service: runtime,
  model: id,
  tasks: ANIMALS,
  groupsPerStep: 1,
  groupSize: 2,
  concurrency: 1,
  config: { learning_rate: 1e-3 },
  evaluate: { tasks: ['wolf'], every: 7 },
  until: { steps: Number(steps) },
  async rollout(animal, { record, attempt }) {
    process.stdout.write('.');
    const recorder = record();
    const messages = [{ role: 'user', content: `Tell me a ${animal} story.` }];
    await recorder.service.createCompletion({ messages, max_tokens: 4 });
    return recorder.finish({ reward: attempt });
  },
});
await runtime.close();
