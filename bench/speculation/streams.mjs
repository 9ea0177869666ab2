// Settings -> tokens per second of streams whose drafts are all right, half right or all wrong, and of the same without drafts, in
// turns within a round. The drafts are predictions of an answer that is known, with some of its tokens replaced.
import { NO_ADAPTER } from '../../dist/backends/index.js';
import { Sequence, Speculation } from '../../dist/engine/index.js';
import { Models } from '../../dist/models/index.js';
import { loadAddon } from '../../dist/native/index.js';
import { report, settingsOfProcess } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { model: file, threads, rounds, sequences, outputTokens } = settingsOfProcess();
const PROMPT_TOKENS = 64;
/** Half right: of so many tokens, one after the other is right, then as many are wrong. */
const STRETCH = 16;
const MAX_DRAFTS = 15;

const options = {
  gpu: false,
  scheduling: 'fcfs',
  prefixCache: false,
  contextSize: 1024,
  maxSequences: 8,
  threads,
};
const models = new Models(options, file, {});
const { model } = await models.use(null);
const { engine, tokenizer } = model;
const { Sampler, SamplerPlan, createDrafter } = loadAddon();
const plan = new SamplerPlan({ vocabSize: tokenizer.vocabSize, temperature: 0.8, topK: 40, topP: 0.95 });

/** Answers all prompts at once; `predictions` (sequences) or none. Gives the tokens of each, and how fast they came. */
async function generate(predictions) {
  const starts = [];
  const ends = [];
  const run = async (index) => {
    const encoded = await tokenizer.encode(wordPrompt(PROMPT_TOKENS, index), { addSpecial: false });
    const group = { prompt: encoded, cacheKey: '', adapter: NO_ADAPTER, priority: 0, arrival: index };
    const prediction = predictions?.[index];
    const drafter = prediction && createDrafter({ minMatch: 3, usesText: false, prediction }, encoded);
    const speculation = drafter ? new Speculation({ drafter, maxTokens: MAX_DRAFTS, trust: 0.8 }) : null;
    const sequence = new Sequence(group, 0, new Sampler(plan, BigInt(index)), {
      speculation,
      maxOutputs: outputTokens,
    });
    const tokens = await new Promise((resolve, reject) => {
      const seen = [];
      engine.submit(sequence, {
        onToken(token) {
          if (seen.push(token) === 1) starts[index] = performance.now();
          if (seen.length < outputTokens) return false;
          ends[index] = performance.now();
          resolve(Int32Array.from(seen));
          return true;
        },
        onError: reject,
        onComplete() {},
      });
    });
    return { tokens, speculation };
  };
  const answers = await Promise.all(Array.from({ length: sequences }, (_, index) => run(index)));
  const rate = (1000 * sequences * (outputTokens - 1)) / (Math.max(...ends) - Math.min(...starts));
  return { answers, rate };
}

const known = (await generate()).answers.map(({ tokens }) => tokens);
const wrong = (token) => (token + 1) % tokenizer.vocabSize;
const CASES = {
  'no drafts': undefined,
  'all right': known,
  'half right': known.map((tokens) =>
    tokens.map((token, i) => (Math.floor(i / STRETCH) % 2 === 0 ? token : wrong(token))),
  ),
  'none right': known.map((tokens) => tokens.map(wrong)),
};
const rates = Object.fromEntries(Object.keys(CASES).map((name) => [name, []]));
const drafts = Object.fromEntries(Object.keys(CASES).map((name) => [name, { drafted: 0, accepted: 0 }]));
let different = 0;
await generate(CASES['all right']); // the engine learns what a row costs
for (let round = 0; round < rounds; round++)
  for (const [name, predictions] of Object.entries(CASES)) {
    const { answers, rate } = await generate(predictions);
    rates[name].push(rate);
    for (const [index, { tokens, speculation }] of answers.entries()) {
      if (tokens.some((token, i) => token !== known[index][i])) different += 1;
      drafts[name].drafted += speculation?.drafted ?? 0;
      drafts[name].accepted += speculation?.accepted ?? 0;
    }
  }
await models.close();
report({ rates, drafts, different });
