// Settings -> event loop delay while 16 sequences stream: milliseconds by which a timer came late, 99th percentile.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, sequences = 16, outputTokens = 64 } = settingsOfProcess();
const RESOLUTION_MS = 1;
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize: 256,
  maxSequences: sequences,
});

const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let decoding = 0;
async function generate(index) {
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(16, index) }],
    max_completion_tokens: outputTokens,
    ignore_eos: true,
    temperature: 0.8,
    seed: index,
    logprobs: true,
    top_logprobs: 5,
    stream: true,
  });
  let tokens = 0;
  for await (const chunk of stream) {
    const before = tokens;
    tokens += chunk.choices[0]?.logprobs?.content?.length ?? 0;
    if (before === 0 && tokens > 0 && ++decoding === sequences) histogram.enable();
    if (tokens === outputTokens) histogram.disable();
  }
}
await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
await runtime.close();
// The histogram holds the time between two timer calls, the timer's own interval included.
const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
report({
  p50Ms: late(histogram.percentile(50)),
  p99Ms: late(histogram.percentile(99)),
  maxMs: late(histogram.max),
});
