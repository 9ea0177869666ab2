// Settings -> while a picture is encoded beside streams of text: delay of the event loop, longest wait of a stream for its next token;
// and the same in the steps that compute the prompt after it.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { aboutPicture, pictureUri } from './pair.mjs';

const { pair, threads, rounds, streams = 4 } = settingsOfProcess();
const RESOLUTION_MS = 1;
/** About as many as while a picture is encoded: the longest of more waits is longer. */
const ALONE_TOKENS = 130;
const { model, mmproj } = pair;
const runtime = await createRuntime({
  model: { path: model, mmproj },
  gpu: false,
  threads,
  contextSize: 4096, // so that no stream ends before the last picture is encoded
  maxSequences: streams + 1,
});

let waitsMs = [];
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
    if (lastMs > 0) waitsMs.push(nowMs - lastMs);
    lastMs = nowMs;
    tokens++;
  }
}
const running = Promise.allSettled(Array.from({ length: streams }, (_, index) => generate(index)));
const until = async (isReached) => {
  while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 5));
};

await until(() => tokens >= 4 * streams); // all have begun
/** Waits -> the median, what 99 of 100 stay below, and the longest. */
const summary = (all) => {
  const sorted = all.toSorted((a, b) => a - b);
  return [0.5, 0.99, 1].map((part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]);
};
const p99Ms = [];
const waits = { alone: [], beside: [] };
const encodeMs = [];
const promptMs = [];
for (let round = 0; round < rounds; round++) {
  waitsMs = [];
  const wanted = tokens + ALONE_TOKENS * streams;
  await until(() => tokens >= wanted);
  waits.alone.push(summary(waitsMs));
  const uri = pictureUri(round);
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  waitsMs = [];
  histogram.enable();
  const beginMs = performance.now();
  const answered = runtime.createCompletion(aboutPicture(uri));
  await until(() => runtime.mediaStats().running > 0);
  await until(() => runtime.mediaStats().running === 0);
  encodeMs.push(performance.now() - beginMs);
  histogram.disable();
  waits.beside.push(summary(waitsMs));
  waitsMs = [];
  await answered;
  promptMs.push(Math.max(...waitsMs));
  // The histogram holds the time between two timer calls, the timer's own interval included.
  p99Ms.push(Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS));
}
stop.abort();
await running;
await runtime.close();
report({ p99Ms, waits, encodeMs, promptMs, streams });
