// Runs jobs without end, for a test that kills this process: <model> <checkpoint folder>.

import { openLossPool } from '../../dist/rl/loss-pool.js';
import { resolveSettings } from '../../dist/rl/settings.js';
import { train } from '../../dist/rl/train.js';
import { openTrainer } from '../../dist/rl/trainer.js';

const [model, checkpoints] = process.argv.slice(2);
const trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
const lossPool = openLossPool();
const attempt = (token, reward) => ({
  reward,
  messages_and_choices: [
    { role: 'user', content: 'go' },
    {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: '' },
      token_ids: [token, 300],
      prompt_token_ids: [1, 2, 3],
      logprobs: { content: [{ logprob: -5 }, { logprob: -5 }] },
    },
  ],
});
process.stdout.write('ready\n');
for (;;) {
  await train(
    { groups: [{ trajectories: [attempt(65, 1), attempt(66, 0)] }], settings: resolveSettings() },
    { trainer, lossPool, checkpoints, tokenizer: {}, emit() {}, now: () => performance.now() },
  );
  process.stdout.write('done\n');
}
