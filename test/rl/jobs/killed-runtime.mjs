// Trains a registered model without end, for a test that kills this process: <home folder>.

import { createRuntime } from '../../../dist/index.js';

const runtime = await createRuntime({ home: process.argv[2], gpu: false, threads: 1 });
const model = await runtime.models.create({
  base_model: 'onpolicy-tiny',
  name: 'pupil',
  return_existing: true,
});
const messages = [{ role: 'user', content: 'Tell me a story.' }];
const { choices } = await runtime.createCompletion({
  model: model.id,
  messages,
  n: 4,
  max_tokens: 24,
  logprobs: true,
  return_token_ids: true,
});
const trajectories = choices.map((choice, i) => ({
  messages_and_choices: [...messages, choice],
  reward: i % 2,
}));
process.stdout.write('ready\n');
for (;;) {
  const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
  await job.done;
}
