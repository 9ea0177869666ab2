// A model of an architecture -> what the library does with it, and where its answers differ from those of a bare loop of llama_decode.
import { execFileSync } from 'node:child_process';
import { buildBare } from '../../bench/bare/build.mjs';
import { createRuntime } from '../../dist/index.js';
import { openTrainer } from '../../dist/rl/public.js';
import { createRandom } from '../model/random.mjs';

/** Log-probabilities of 32-bit weights and caches differ by rounding only. */
const TOLERANCE = 2e-3;
/** Likeliest tokens that are so close may fall either way. */
const TIE = 1e-3;
const OPTIONS = { gpu: false, threads: 1, maxSequences: 8, contextSize: 1024 };
const TOKENS = 20;

/**
 * `f32` and `q8_0`: files of the same architecture. A cell of the result is true, false, or the reason why not. `differences`: texts,
 * none where all answers are those of the loop.
 */
export async function measureArchitecture({ f32, q8_0 }) {
  const checks = [];
  const { turns, drafts } = await withRuntime({ model: f32 }, (runtime) => answersOf(runtime, checks));
  await withRuntime({ model: f32, kvTokens: 512, contextSize: 256 }, (runtime) => preempted(runtime, checks));
  return {
    differences: await compare(f32, checks),
    turns,
    drafts,
    kernels: await withRuntime({ model: q8_0 }, usesKernels),
    deterministic: await isDeterministic(f32),
    trainable: await isTrainable(f32),
  };
}

async function withRuntime({ model, ...options }, use) {
  const runtime = await createRuntime({ ...OPTIONS, model, ...options });
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}

async function usesKernels(runtime) {
  await ask(runtime, [], '', [65]);
  return runtime.stats().kernels[0].kernels !== 'plain';
}

/** Token ids of ordinary text. */
function drawPrompt(random, length) {
  return Array.from({ length }, () => random.integer(64, 120));
}

async function ask(runtime, checks, name, prompt, more = {}) {
  const answer = await runtime.createTextCompletion({
    prompt,
    max_tokens: TOKENS,
    temperature: 0,
    ignore_eos: true,
    logprobs: 0,
    return_token_ids: true,
    speculation: false,
    ...more,
  });
  for (const { token_ids: ids, logprobs } of answer.choices)
    checks.push({ name, prompt, ids, logprobs: logprobs.token_logprobs, isGreedy: !more.temperature });
  return { ids: answer.choices[0].token_ids, cached: answer.usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

async function answersOf(runtime, checks) {
  const random = createRandom(5);
  const prompts = Array.from({ length: 8 }, (_, i) => drawPrompt(random, 20 + 15 * i));
  await ask(runtime, checks, 'alone', drawPrompt(random, 70));
  await Promise.all(prompts.map((prompt) => ask(runtime, checks, 'among 8', prompt)));
  await ask(runtime, checks, 'forked', drawPrompt(random, 90), { n: 3, temperature: 1, seed: 1 });
  return { turns: await turnsOf(runtime, checks, random), drafts: await draftsOf(runtime, checks, random) };
}

/** Whether later turns of a conversation compute only what is new. */
async function turnsOf(runtime, checks, random) {
  let prompt = drawPrompt(random, 60);
  let isCached = true;
  for (let turn = 0; turn < 4; turn++) {
    const { ids, cached } = await ask(runtime, checks, `turn ${turn}`, prompt);
    if (turn > 0 && cached < prompt.length - 60) isCached = false;
    prompt = [...prompt, ...ids, ...drawPrompt(random, 20)];
  }
  return isCached;
}

/** Whether drafts are verified, right and wrong ones. */
async function draftsOf(runtime, checks, random) {
  const part = drawPrompt(random, 12);
  const prompt = [...part, ...part, ...part, ...part.slice(0, 6)];
  const before = runtime.stats().draftedTokens;
  const { ids } = await ask(runtime, checks, 'written for a draft', prompt);
  const speculation = { method: 'ngram', minMatch: 1, maxTokens: 4 };
  await ask(runtime, checks, 'with drafts', prompt, { speculation });
  await ask(runtime, checks, 'with right drafts', [...prompt, ...ids, ...prompt], { speculation });
  return runtime.stats().draftedTokens > before;
}

async function preempted(runtime, checks) {
  const random = createRandom(6);
  const prompts = Array.from({ length: 8 }, () => drawPrompt(random, 60));
  await Promise.all(prompts.map((prompt) => ask(runtime, checks, 'preempted', prompt, { max_tokens: 40 })));
}

/** Texts of what differs from the loop. */
async function compare(file, checks) {
  const { program, libraries } = await buildBare({ name: 'loop' });
  const input = checks.map(({ prompt, ids }) => [prompt.length, ...prompt, ...ids].join(' ')).join('\n');
  const args = [`libraries=${libraries}`, `model=${file}`];
  const lines = execFileSync(program, args, { input: `${input}\n`, encoding: 'utf8' })
    .trimEnd()
    .split('\n');
  const differences = [];
  for (const [i, { name, ids, logprobs, isGreedy }] of checks.entries()) {
    const numbers = lines[i].trim().split(' ').map(Number); // (ids, best id and two log-probabilities)
    for (const [at, id] of ids.entries()) {
      const [best, highest, own] = numbers.slice(3 * at);
      const place = `${name}, token ${at}`;
      if (isGreedy && best !== id && highest - own > TIE)
        differences.push(`${place}: ${id} (${own}), not ${best} (${highest})`);
      const error = Math.abs(own - logprobs[at]);
      if (!(error <= TOLERANCE)) differences.push(`${place}: ${logprobs[at]}, not ${own}`);
    }
  }
  return differences;
}

/** Whether a runtime promises the same bits alone and in company, and keeps it. */
async function isDeterministic(model) {
  return await supported(() =>
    withRuntime({ model, deterministic: true, contextSize: 256 }, async (runtime) => {
      const alone = [];
      const company = [];
      const random = createRandom(7);
      const prompts = Array.from({ length: 4 }, () => drawPrompt(random, 50));
      await ask(runtime, alone, '', prompts[0], { cache_salt: 'a' });
      await Promise.all(prompts.map((prompt) => ask(runtime, company, '', prompt, { cache_salt: 'b' })));
      return JSON.stringify(alone[0].logprobs) === JSON.stringify(company[0].logprobs) ? true : 'broken';
    }),
  );
}

async function isTrainable(model) {
  return await supported(async () => {
    await (await openTrainer({ model, gpu: false, threads: 1 })).close();
    return true;
  });
}

/** False where it is refused by name. */
async function supported(work) {
  try {
    return await work();
  } catch (error) {
    if (error.code === 'UNSUPPORTED') return false;
    throw error;
  }
}
