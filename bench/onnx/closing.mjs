// A large model and a small one -> memory over what the process had before, while the large one is open and when it is closed,
// for each of some turns. Runs with --expose-gc.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, small, turns = 4, parallel = 4, outputTokens = 8 } = settingsOfProcess();

async function residentMb() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return process.memoryUsage.rss() / 2 ** 20;
}

/** Opens a model, asks it, and closes it; gives the memory in between. */
async function use(path) {
  const runtime = await createRuntime({ model: path, gpu: false, contextSize: 512, maxSequences: parallel });
  await Promise.all(
    Array.from({ length: parallel }, (_, index) =>
      runtime.createCompletion({
        messages: [{ role: 'user', content: wordPrompt(32, index) }],
        max_completion_tokens: outputTokens,
        ignore_eos: true,
      }),
    ),
  );
  const open = await residentMb();
  await runtime.close();
  return open;
}

await use(small); // what is loaded once, whatever model is opened
const before = await residentMb();
const [openMb, leftMb] = [[], []];
for (let turn = 0; turn < turns; turn++) {
  openMb.push((await use(model)) - before);
  leftMb.push((await residentMb()) - before);
}
report({ openMb, leftMb });
