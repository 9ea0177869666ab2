// Settings -> time of a token with and without a logits processor that does nothing, in turns, over the vocabulary of Qwen3.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { median, report, settingsOfProcess } from '../lib/measure.mjs';
import { writeWideModel } from './wide-model.mjs';

const { rounds, vocabSize = 151_936, tokens = 60 } = settingsOfProcess();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-'));
const model = path.join(folder, 'wide.gguf');
writeWideModel(model, { vocabSize, hidden: 64, layers: 1, heads: 2, feedForward: 64, contextLength: 256 });
const runtime = await createRuntime({ model, gpu: false, threads: 1, maxSequences: 1 });

/** The median time between two tokens: a busy machine disturbs it less than the mean. */
async function tokenMs(logits_processors) {
  const messages = [{ role: 'user', content: 'x' }];
  const common = { messages, max_completion_tokens: tokens, ignore_eos: true, temperature: 0, stream: true };
  const times = [];
  for await (const chunk of await runtime.createCompletion({ ...common, logits_processors }))
    if (chunk.choices.length > 0) times.push(performance.now());
  return median(times.slice(2).map((time, i) => time - times[i + 1]));
}

await tokenMs([() => {}]); // warms up
const plainMs = [];
const hookedMs = [];
for (let round = 0; round < rounds; round++) {
  plainMs.push(await tokenMs([]));
  hookedMs.push(await tokenMs([() => {}]));
}
await runtime.close();
fs.rmSync(folder, { recursive: true });
report({ plainMs, hookedMs, vocabSize });
