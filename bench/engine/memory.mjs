// Settings -> resident memory after 500 and after 5,000 requests on the embedded model. Runs with --expose-gc.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { threads, from = 500, to = 5000, parallel = 16, outputTokens = 8 } = settingsOfProcess();
const runtime = await createRuntime({
  gpu: false,
  threads,
  contextSize: 512,
  maxSequences: parallel,
});

let next = 0;
async function work(until) {
  while (next < until) {
    const index = next++;
    const request = {
      messages: [{ role: 'user', content: wordPrompt(4 + (index % 40), index) }],
      max_completion_tokens: outputTokens,
      ignore_eos: true,
      logprobs: index % 2 === 0,
      seed: index,
    };
    if (index % 3 > 0) await runtime.createCompletion(request);
    else for await (const _chunk of await runtime.createCompletion({ ...request, stream: true }));
  }
}

async function residentBytesAfter(requests) {
  await Promise.all(Array.from({ length: parallel }, () => work(requests)));
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return process.memoryUsage.rss();
}

const residentMb = [];
for (let step = 0; step <= 3; step++)
  residentMb.push((await residentBytesAfter(from + ((to - from) * step) / 3)) / 2 ** 20);
await runtime.close();
report({ residentMb, growthPercent: 100 * (residentMb.at(-1) / residentMb[0] - 1) });
