// Opens a training run, or an earlier one, and takes steps without end, for a test that kills this process: <home folder> <run id?>.

import { createRuntime } from '../../../dist/index.js';

const [, , home, id] = process.argv;
const runtime = await createRuntime({ home, gpu: false, threads: 1 });
const run = await runtime.openTraining(id ? { run: id } : { model: 'onpolicy-tiny', rank: 4, alpha: 8 });
const tokens = [5, 9, 14, 3, 8, 21, 30];
const datum = {
  model_input: { chunks: [{ tokens: tokens.slice(0, -1) }] },
  loss_fn_inputs: { target_tokens: tokens.slice(1) },
};
if (run.sequence === 0) await run.saveState('newest');
const say = (line) => process.stdout.write(`${line}\n`);
say(run.id);
for (;;) {
  await run.forwardBackward([datum]);
  say('optimizer step');
  await run.optimStep({ learning_rate: 1e-3 });
  say('save');
  await run.saveState('newest');
}
