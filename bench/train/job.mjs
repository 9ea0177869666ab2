// Settings -> a training job in a runtime: how late timers come meanwhile, and what its new adapter adds to the next first token.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createRuntime } from '../../dist/index.js';
import { median, report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, rounds, answers = 4, answerTokens = 64 } = settingsOfProcess();
const RESOLUTION_MS = 1;
const PLAIN_REQUESTS = 3;
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-'));
const runtime = await createRuntime({ model, gpu: false, threads, contextSize: 512, maxSequences: 8, home });
const registered = await runtime.models.create({ base_model: model });

let prompts = 0;
/** A message that no request had before: nothing of it is cached. */
const newMessages = () => [{ role: 'user', content: wordPrompt(64, 1000 + prompts++) }];

/** Milliseconds until the first token of a new request. */
async function firstTokenMs() {
  const start = performance.now();
  const stream = await runtime.createCompletion({
    model: registered.id,
    messages: newMessages(),
    max_completion_tokens: 2,
    ignore_eos: true,
    logprobs: true,
    stream: true,
  });
  let ms = null;
  for await (const chunk of stream)
    if (chunk.choices[0]?.logprobs?.content?.length) ms ??= performance.now() - start;
  return ms;
}

async function sampleGroup() {
  const messages = newMessages();
  const { choices } = await runtime.createCompletion({
    model: registered.id,
    messages,
    n: answers,
    max_completion_tokens: answerTokens,
    ignore_eos: true,
    logprobs: true,
    return_token_ids: true,
  });
  return {
    trajectories: choices.map((choice, i) => ({
      messages_and_choices: [...messages, choice],
      reward: i % 2,
    })),
  };
}

// The histogram holds the time between two timer calls, the timer's own interval included.
const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
const samples = { swapMs: [], p99Ms: [], maxMs: [] }; // swapMs: over a plain request
for (let round = 0; round < rounds; round++) {
  const trajectory_groups = [await sampleGroup()];
  await firstTokenMs();
  const plainMs = [];
  for (let i = 0; i < PLAIN_REQUESTS; i++) plainMs.push(await firstTokenMs());
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const job = await runtime.train({ model_id: registered.id, trajectory_groups });
  histogram.enable();
  await job.done;
  histogram.disable();
  samples.swapMs.push((await firstTokenMs()) - median(plainMs));
  samples.p99Ms.push(late(histogram.percentile(99)));
  samples.maxMs.push(late(histogram.max));
}
await runtime.close();
fs.rmSync(home, { recursive: true });
report(samples);
