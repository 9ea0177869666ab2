// Settings -> while a picture is encoded beside streams of text: delay of the event loop, longest wait of a stream for its next token;
// and the same in the steps that compute the prompt after it.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';
import { aboutPicture, pictureUri } from './pair.mjs';

const { pair, threads, rounds, streams = 4 } = settingsOfProcess();
const RESOLUTION_MS = 1;
const ALONE_TOKENS = 24;
const { model, mmproj } = pair;
const runtime = await createRuntime({
  model: { path: model, mmproj },
  gpu: false,
  threads,
  contextSize: 4096, // so that no stream ends before the last picture is encoded
  maxSequences: streams + 1,
});

let longestMs = 0;
let tokens = 0;
const stop = new AbortController();
async function generate(index) {
  const stream = await runtime.createCompletion(
    {
      messages: [{ role: 'user', content: wordPrompt(16, index) }],
      ignore_eos: true,
      logprobs: true,
      stream: true,
      seed: index,
    },
    { signal: stop.signal },
  );
  let lastMs = 0;
  for await (const { choices } of stream) {
    if (!choices[0]?.logprobs?.content.length) continue;
    const nowMs = performance.now();
    if (lastMs > 0) longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    tokens++;
  }
}
const running = Promise.allSettled(Array.from({ length: streams }, (_, index) => generate(index)));
const until = async (isReached) => {
  while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 5));
};

await until(() => tokens >= 4 * streams); // all have begun
const p99Ms = [];
const aloneMs = [];
const besideMs = [];
const promptMs = [];
for (let round = 0; round < rounds; round++) {
  longestMs = 0;
  const wanted = tokens + ALONE_TOKENS * streams;
  await until(() => tokens >= wanted);
  aloneMs.push(longestMs);
  const uri = pictureUri(round);
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  longestMs = 0;
  histogram.enable();
  const answered = runtime.createCompletion(aboutPicture(uri));
  await until(() => runtime.mediaStats().running > 0);
  await until(() => runtime.mediaStats().running === 0);
  histogram.disable();
  besideMs.push(longestMs);
  longestMs = 0;
  await answered;
  promptMs.push(longestMs);
  // The histogram holds the time between two timer calls, the timer's own interval included.
  p99Ms.push(Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS));
}
stop.abort();
await running;
await runtime.close();
report({ p99Ms, aloneMs, besideMs, promptMs, streams });
