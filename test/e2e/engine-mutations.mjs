// [work, ...] as JSON -> what each gives, what of the engine is off, and the warnings, as JSON. A work: { kind, path, options, request }.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { engineReport } from '../../dist/engine/native/index.js';
import { createRuntime } from '../../dist/index.js';
import { openTrainer } from '../../dist/rl/trainer.js';

const works = JSON.parse(process.argv[2]);
const warnings = [];
process.on('warning', ({ code, message }) => warnings.push([code, message]));
const settings = { gpu: false, threads: 2, contextSize: 512, maxSequences: 4 };

/** Opens something, passes it on, and closes it. */
async function using(opened, use) {
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}
const withRuntime = async ({ options }, use) =>
  await using(await createRuntime({ ...settings, ...options }), use);

const answer = (work) => withRuntime(work, (runtime) => answerOf(runtime, work));
async function answerOf(runtime, { request }) {
  const { choices, usage } = await runtime.createCompletion({
    messages: [{ role: 'user', content: 'why '.repeat(20) }],
    chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
    ...{ max_tokens: 12, temperature: 0, ignore_eos: true, logprobs: true, return_token_ids: true },
    ...request,
  });
  const { engine, kernels } = runtime.stats();
  return {
    tokens: choices.map(({ token_ids }) => token_ids),
    logprobs: choices.map(({ logprobs }) => logprobs.content.map(({ logprob }) => logprob)),
    experts: choices.map(({ routed_experts }) => routed_experts !== undefined),
    drafted: usage.completion_tokens_details ?? null,
    kernels: kernels.map(({ kernels, attention }) => [kernels, attention]),
    decoder: engine.decoder,
    off: engine.off.map(({ assumption }) => assumption),
    holds: engine.holds,
  };
}

const embed = (work) => withRuntime(work, embedWith);
async function embedWith(runtime) {
  const { data } = await runtime.createEmbeddings({ input: ['why ', 'what is it'] });
  const { engine } = runtime.stats();
  return {
    vectors: data.map(({ embedding }) => embedding),
    off: engine.off.map(({ assumption }) => assumption),
  };
}

async function train({ path: model }) {
  return await using(await openTrainer({ model, rank: 4, gpu: false, threads: 2 }), () => {
    const { off, holds } = engineReport();
    return { opened: true, off: off.map(({ assumption }) => assumption), holds };
  });
}

/** Answers with an adapter of known weights. */
async function adapt({ path: model, ...work }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-adapted-'));
  try {
    await using(await openTrainer({ model, rank: 16, gpu: false, threads: 2 }), async (trainer) => {
      await trainer.loadAdapter(knownWeights(trainer.adapter()));
      await trainer.save(folder);
    });
    const file = fs.readdirSync(folder).find((name) => name.endsWith('.gguf'));
    return await answer({ ...work, request: { adapters: [{ file: path.join(folder, file) }] } });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

function knownWeights(factors) {
  const wave = (values, size) => values.map((_, i) => size * Math.sin(i + 1));
  return Object.fromEntries(
    Object.entries(factors).map(([name, { a, b }]) => [name, { a: wave(a, 0.2), b: wave(b, 0.4) }]),
  );
}

const KINDS = { answer, adapt, embed, train };
const results = [];
for (const work of works)
  results.push(await KINDS[work.kind](work).catch(({ code, message }) => ({ code, message })));
await new Promise((resolve) => setTimeout(resolve, 50)); // warnings come after the call
process.stdout.write(JSON.stringify({ results, warnings }));
process.exit();
