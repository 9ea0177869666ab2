// Settings -> tokens per second of a stream: alone, beside a stream of another model, and beside its prompts; and of these.
import { createRuntime } from '../../dist/index.js';
import { median, report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model } = settingsOfProcess();
const MEASURED_MS = 4000;
const PROMPT_TOKENS = 1000;

const open = () =>
  createRuntime({
    model,
    gpu: false,
    contextSize: 2048,
    maxSequences: 2,
    prefixCache: false,
    speculation: false,
  });
const [first, second] = [await open(), await open()];

/** Adds the times at which the tokens of a stream come, until `signal`. */
async function stream(runtime, seed, signal, times) {
  const request = {
    messages: [{ role: 'user', content: wordPrompt(32, seed) }],
    max_completion_tokens: 1800,
    ignore_eos: true,
    seed,
    logprobs: true,
    stream: true,
  };
  try {
    for await (const { choices } of await runtime.createCompletion(request, { signal }))
      if (choices[0]?.logprobs?.content.length) times.push(performance.now());
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

let prompts = 0;
/** Computes prompts one after the other, until `signal`, and adds the time at which each was computed. */
async function readPrompts(runtime, signal, ends) {
  while (!signal.aborted) {
    const content = wordPrompt(PROMPT_TOKENS, 100 + prompts++);
    await runtime
      .createCompletion({ messages: [{ role: 'user', content }], max_completion_tokens: 1 }, { signal })
      .then(
        () => ends.push(performance.now()),
        () => {},
      );
  }
}

/** Runs all of `work` for a while: each adds times to its list. */
async function together(...work) {
  const stop = new AbortController();
  const lists = work.map(() => []);
  const running = work.map((one, i) => one(stop.signal, lists[i]));
  while (lists.some((times) => times.length < 2)) await new Promise((resolve) => setTimeout(resolve, 5));
  const begun = performance.now();
  await new Promise((resolve) => setTimeout(resolve, MEASURED_MS));
  stop.abort();
  await Promise.all(running);
  return lists.map((times) => times.filter((time) => time >= begun));
}

const rate = (times) => (1000 * (times.length - 1)) / (times.at(-1) - times[0]);
const waits = (times) => times.slice(1).map((time, i) => time - times[i]);
const streamOf = (runtime, seed) => (signal, times) => stream(runtime, seed, signal, times);
const promptsOf = (runtime) => (signal, ends) => readPrompts(runtime, signal, ends);

await together(streamOf(first, 1), streamOf(second, 2)); // warms both up
const [alone] = await together(streamOf(first, 1));
const both = await together(streamOf(first, 1), streamOf(second, 2));
const [promptsAlone] = await together(promptsOf(second));
const [beside, promptsBeside] = await together(streamOf(first, 1), promptsOf(second));
await Promise.all([first.close(), second.close()]);
report({
  alone: rate(alone),
  both: Math.min(...both.map(rate)),
  besidePrompts: rate(beside),
  promptsAlone: PROMPT_TOKENS * rate(promptsAlone),
  promptsBeside: PROMPT_TOKENS * rate(promptsBeside),
  longestSteps: Math.max(...waits(beside)) / median(waits(beside)),
});
