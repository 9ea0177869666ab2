// A model of an architecture -> what the library does with it, and where its answers differ from those of a bare loop of llama_decode.
import { execFileSync } from 'node:child_process';
import { buildBare } from '../../../bench/bare/build.mjs';
import { StepCosts } from '../../../dist/engine/step-costs.js';
import { createRuntime } from '../../../dist/index.js';
import { openTrainer } from '../../../dist/rl/public.js';
import { createRandom } from '../model/random.mjs';
import { describe } from './table.mjs';

/** Drafts are checked whatever a busy machine does: steps of any size are thought to take as long. */
StepCosts.prototype.record = () => {};

/** Log-probabilities of 32-bit weights and caches differ by rounding only; likeliest tokens that are as close may fall either way. */
const TOLERANCE = 2e-3;
const OPTIONS = { gpu: false, threads: 1, maxSequences: 8, contextSize: 1024 };
const TOKENS = 20;
/** Architectures whose attention would be another one without fusion, and in a pool. */
const FUSED = /^minimax-m3$/;
const OWN_CELLS = /^(minimax-m3|qwen4exp)$/;
/** The token of `a` by vocabulary. */
const FIRST_LETTERS = { bpe: 97, spm: 260 };
let firstLetter = 0;

/** `f32` and `q8_0`: its files. `differences`: texts, none where all answers are those of the loop; other results are true or false. */
export async function measureArchitecture(name, { f32, q8_0 }) {
  const checks = [];
  firstLetter = FIRST_LETTERS[describe(name).vocabulary];
  const isFused = FUSED.test(name);
  const { turns, drafts } = await withRuntime({ model: f32 }, (runtime) => answersOf(runtime, checks));
  const pool = OWN_CELLS.test(name) ? {} : { kvTokens: 512 }; // sequences with cells of their own are never preempted
  await withRuntime({ model: f32, ...pool, contextSize: 256 }, (runtime) => preempted(runtime, checks));
  return {
    differences: await compare(f32, checks, isFused),
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
  return Array.from({ length }, () => firstLetter + random.integer(0, 25));
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

/** Returns true if later turns of a conversation only compute new tokens. */
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

/** Asks with wrong drafts, then with drafts from earlier answers. Returns true if some were accepted. */
async function draftsOf(runtime, checks, random) {
  const prompt = drawPrompt(random, 90);
  const before = runtime.stats().acceptedTokens;
  for (const method of ['ngram', 'suffix', 'suffix'])
    await ask(runtime, checks, `drafts of ${method}`, prompt, { speculation: { method, minMatch: 1 } });
  return runtime.stats().acceptedTokens > before;
}

async function preempted(runtime, checks) {
  const random = createRandom(6);
  const prompts = Array.from({ length: 8 }, () => drawPrompt(random, 60));
  await Promise.all(prompts.map((prompt) => ask(runtime, checks, 'preempted', prompt, { max_tokens: 40 })));
}

/**
 * Texts of what differs from the loop by more than rounding: the loop itself, with a prompt as one batch and with each token alone, says
 * how much that may be.
 */
async function compare(file, checks, isFused) {
  const whole = await loop(file, checks, { isSingle: false, isFused });
  const single = await loop(file, checks, { isSingle: true, isFused });
  const pairs = single.flatMap((row, i) => row.map((numbers, at) => [numbers, whole[i][at]]));
  const rounding = Math.max(...pairs.map(([a, b]) => Math.abs(a[2] - b[2])));
  const tolerance = Math.max(TOLERANCE, 2 * rounding);
  const differences = [];
  for (const [i, { name, ids, logprobs, isGreedy }] of checks.entries())
    for (const [at, id] of ids.entries()) {
      const [best, highest, own] = whole[i][at];
      const place = `${name}, token ${at}`;
      if (isGreedy && best !== id && highest - own > tolerance)
        differences.push(`${place}: ${id} (${own}), not ${best} (${highest})`);
      const error = Math.abs(own - logprobs[at]);
      if (!(error <= tolerance)) differences.push(`${place}: ${logprobs[at]}, not ${own}`);
    }
  return differences;
}

/** (checks, tokens) the likeliest id, its log-probability, and that of the answer's token. */
async function loop(file, checks, { isSingle, isFused }) {
  const { program, libraries } = await buildBare({ name: 'loop' });
  const rows = checks.map(({ prompt, ids }) => [isSingle ? 1 : prompt.length, ...prompt, ...ids].join(' '));
  const args = [`libraries=${libraries}`, `model=${file}`, `fused=${Number(isFused)}`];
  const output = execFileSync(program, args, { input: `${rows.join('\n')}\n`, encoding: 'utf8' });
  return output
    .trimEnd()
    .split('\n')
    .map((line, i) => {
      const numbers = line.trim().split(' ').map(Number);
      const triples = Array.from({ length: numbers.length / 3 }, (_, at) =>
        numbers.slice(3 * at, 3 * at + 3),
      );
      return triples.slice(-checks[i].ids.length);
    });
}

/** Returns true if a runtime accepts `deterministic` and gives the same bits alone and in company. */
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

/** False if it is refused by name. */
async function supported(work) {
  try {
    return await work();
  } catch (error) {
    if (error.code === 'UNSUPPORTED') return false;
    throw error;
  }
}
