// Settings -> sequences and cells in use after 500 requests on the embedded model were aborted at random moments.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { requests = 500, parallel = 48, latestMs = 1000, mostChunks = 60 } = settingsOfProcess();
const runtime = await createRuntime({
  gpu: false,
  threads: 1,
  contextSize: 1024,
  maxSequences: 16,
});

let started = 0;
let aborted = 0;
let finished = 0;
/** A whole answer, aborted after a random time, perhaps while it waits. */
async function abortAfterTime(request) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), Math.random() * latestMs);
  await runtime.createCompletion(request, { signal: controller.signal }).finally(() => clearTimeout(timer));
}

/** A stream, aborted after a random number of chunks: by its signal, or by leaving the loop. */
async function abortAfterChunks(request, isLeft) {
  const controller = new AbortController();
  const stream = await runtime.createCompletion({ ...request, stream: true }, { signal: controller.signal });
  let left = Math.ceil(Math.random() * mostChunks);
  for await (const _chunk of stream) {
    left -= 1;
    if (left > 0) continue;
    if (isLeft) throw Object.assign(new Error('left'), { code: 'ABORTED' });
    controller.abort();
  }
}

async function work() {
  while (started < requests) {
    const index = started++;
    const request = {
      messages: [{ role: 'user', content: wordPrompt(8 + (index % 200), index) }],
      n: 1 + (index % 3),
      max_completion_tokens: 200,
      ignore_eos: true,
    };
    try {
      if (index % 2 === 0) await abortAfterTime(request);
      else await abortAfterChunks(request, index % 4 === 1);
      finished += 1;
    } catch (error) {
      if (error.code !== 'ABORTED') throw error;
      aborted += 1;
    }
  }
}
await Promise.all(Array.from({ length: parallel }, work));
await sleep(200); // an abort takes effect at the next step
const stats = runtime.stats();
await runtime.close();
report({ aborted, finished, stats });
