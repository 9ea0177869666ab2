// Settings -> what is still in use after 500 requests on the embedded model were aborted at random moments.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { threads, requests = 500, parallel = 48, latestMs = 300 } = settingsOfProcess();
const runtime = await createRuntime({
  gpu: false,
  threads,
  contextSize: 512,
  maxSequences: 16,
});

let started = 0;
let aborted = 0;
let finished = 0;
async function work() {
  while (started < requests) {
    const index = started++;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), Math.random() * latestMs);
    const request = {
      messages: [{ role: 'user', content: wordPrompt(8 + (index % 200), index) }],
      n: 1 + (index % 3),
      max_completion_tokens: 200,
      ignore_eos: true,
    };
    try {
      if (index % 2 === 0) await runtime.createCompletion(request, { signal: controller.signal });
      else
        for await (const _chunk of await runtime.createCompletion(
          { ...request, stream: true },
          { signal: controller.signal },
        ));
      finished += 1;
    } catch (error) {
      if (error.code !== 'ABORTED') throw error;
      aborted += 1;
    }
    clearTimeout(timer);
  }
}
await Promise.all(Array.from({ length: parallel }, work));
await sleep(200); // an abort takes effect at the next step
const stats = runtime.stats();
await runtime.close();
report({ aborted, finished, stats });
