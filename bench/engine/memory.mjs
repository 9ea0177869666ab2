// Settings -> resident memory and used JavaScript heap after some numbers of requests on the embedded model or another one.
// Runs with --expose-gc.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, requests, parallel = 16, outputTokens = 24 } = settingsOfProcess();
const runtime = await createRuntime({
  ...(model === undefined ? {} : { model }),
  gpu: false,
  threads: 1,
  contextSize: 512,
  maxSequences: parallel,
});

let next = 0;
async function work(until) {
  while (next < until) {
    const index = next++;
    const request = {
      messages: [{ role: 'user', content: wordPrompt(4 + (index % 12), index) }],
      max_completion_tokens: outputTokens,
      ignore_eos: true,
      logprobs: index % 2 === 0,
      seed: index,
    };
    if (index % 3 > 0) await runtime.createCompletion(request);
    else for await (const _chunk of await runtime.createCompletion({ ...request, stream: true }));
  }
}

async function memoryAfter(count) {
  await Promise.all(Array.from({ length: parallel }, () => work(count)));
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { residentMb: rss / 2 ** 20, heapMb: heapUsed / 2 ** 20 };
}

const memory = []; // one for each of `requests`
for (const count of requests) memory.push(await memoryAfter(count));
await runtime.close();
report({
  residentMb: memory.map(({ residentMb }) => residentMb),
  heapMb: memory.map(({ heapMb }) => heapMb),
});
