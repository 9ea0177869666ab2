// A program whose GPU is lost while it runs: prints what requests, training and closing then say, one line each.
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { openTrainer } from '../../dist/rl/public.js';
import { writeArchitecture } from '../../scripts/make/architectures/write.mjs';

const [home] = process.argv.slice(2);
const request = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
  max_tokens: 12,
};
const outcome = (promise) =>
  promise.then(
    (answer) => answer?.choices?.[0].message.content ?? 'done',
    ({ code }) => code,
  );
const ended = async (items) => {
  while (!(await items.next()).done);
};
const say = (line) => process.stdout.write(`${line}\n`);
const row = {
  tokens: Int32Array.of(1, 2, 3, 4),
  positions: Int32Array.of(0, 1, 2, 3),
  groupIds: new Int32Array(4),
  parentIds: new Int32Array(4),
  logitRows: Int32Array.of(0, 1, 2),
  targetTokens: Int32Array.of(2, 3, 4),
};
const model = new URL('../../models/onpolicy-tiny.gguf', import.meta.url).pathname;

const runtime = await createRuntime({ gpu: 'vulkan', home });
const trainer = await openTrainer({ model, gpu: 'vulkan' });
const recurrent = path.join(home, 'mamba2.gguf');
await writeArchitecture(recurrent, { name: 'mamba2' });
const withState = await createRuntime({ model: recurrent, gpu: 'vulkan', home });
say(`before: ${await outcome(runtime.createCompletion(request))}`);
say(`before: ${await outcome(trainer.forward(row))}`);
const stream = await withState.createTextCompletion({
  prompt: [1, 2, 3],
  max_tokens: 64,
  ignore_eos: true,
  stream: true,
});
const rest = stream[Symbol.asyncIterator]();
say(`before: ${await outcome(rest.next())}`);
// The next step is being computed ahead, and is the first to see the loss.
fs.writeFileSync(process.env.LOST_DEVICE, '');
say(`lost: ${await outcome(ended(rest))}`);
say(`lost: ${await outcome(runtime.createCompletion(request))}`);
say(`lost: ${await outcome(runtime.createCompletion(request))}`);
say(`lost: ${await outcome(trainer.forward(row))}`);
say(`closed: ${await outcome(runtime.close())}`);
say(`closed: ${await outcome(withState.close())}`);
say(`closed: ${await outcome(trainer.close())}`);
const onCpu = await createRuntime({ gpu: false, home });
say(`on the CPU: ${await outcome(onCpu.createCompletion(request))}`);
await onCpu.close();
say('end');
