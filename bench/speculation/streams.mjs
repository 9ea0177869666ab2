// Settings -> tokens per second of streams whose drafts are all right, half right or all wrong, and of the same without drafts, before
// and after each of the others: the speed of a shared machine changes over seconds. The drafts are predictions of an answer that is known, with some of its tokens replaced. Beside them: drafts
// from the text and earlier answers, where a random model repeats nothing, and a draft model that is the model itself.

import { NO_ADAPTER } from '../../dist/engine/backend/index.js';
import { Sequence, Speculation } from '../../dist/engine/index.js';
import { loadAddon } from '../../dist/engine/native/index.js';
import { ggufFormat, openModels } from '../../dist/models/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

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
const { memory } = openModels({ ...options, formats: [ggufFormat] }, file, {});
const { model } = await memory.use(null);
const { engine, tokenizer } = model;
const { handle } = (await memory.drafts.use(model, { model: file })).model;
const { Sampler, SamplerPlan, addAnswer, createAnswerIndex, createDrafter } = loadAddon();
const plan = new SamplerPlan({ vocabSize: tokenizer.vocabSize, temperature: 0.8, top_k: 40, top_p: 0.95 });

/** Answers all prompts at once; `sourcesOf` gives what drafts for each, or is absent. Gives the tokens of each, and how fast they came. */
async function generate(sourcesOf) {
  const starts = [];
  const ends = [];
  const run = async (index) => {
    const encoded = await tokenizer.encode(wordPrompt(PROMPT_TOKENS, index), { addSpecial: false });
    const group = { prompt: encoded, cacheKey: '', adapter: NO_ADAPTER, priority: 0, arrival: index };
    const { trust, ...sources } = sourcesOf?.(index) ?? {};
    const options = { maxTokens: MAX_DRAFTS, trust, usesModel: 'model' in sources };
    const drafter = sourcesOf && createDrafter({ minMatch: 3, usesText: false, ...sources }, encoded);
    const speculation = drafter ? new Speculation({ drafter, ...options }) : null;
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
  const given = await Promise.all(Array.from({ length: sequences }, (_, index) => run(index)));
  const rate = (1000 * sequences * (outputTokens - 1)) / (Math.max(...ends) - Math.min(...starts));
  return { answers: given, rate };
}

const known = (await generate()).answers.map(({ tokens }) => tokens);
const wrong = (token) => (token + 1) % tokenizer.vocabSize;
/** Predicts answers, of whose tokens some are replaced. The settings are those of a request with `prediction`. */
const predict = (isRight) => (index) => ({
  prediction: known[index].map((token, i) => (isRight(i) ? token : wrong(token))),
  trust: 0.8,
});
/** As `auto` drafts. The index knows what other prompts were answered. */
const answers = createAnswerIndex(3, 2 ** 26);
for (const tokens of known) addAnswer(answers, tokens.map(wrong));
const CASES = {
  'no drafts': undefined,
  'all right': predict(() => true),
  'half right': predict((i) => Math.floor(i / STRETCH) % 2 === 0),
  'none right': predict(() => false),
  'auto, text without repeats': () => ({ usesText: true, answers, trust: 0.4 }),
  'draft model: itself': () => ({ model: handle, key: '', trust: 0.6 }),
};
const rates = Object.fromEntries(Object.keys(CASES).map((name) => [name, []]));
/** Times the mean speed without drafts right before and right after. */
const gains = Object.fromEntries(Object.keys(CASES).map((name) => [name, []]));
const drafts = Object.fromEntries(Object.keys(CASES).map((name) => [name, { drafted: 0, accepted: 0 }]));
let different = 0;
await generate(CASES['all right']); // the engine learns what a row costs
let { rate: before } = await generate();
for (let round = 0; round < rounds; round++)
  for (const [name, sourcesOf] of Object.entries(CASES)) {
    const { answers: given, rate } = await generate(sourcesOf);
    const { rate: after } = await generate();
    rates[name].push(rate);
    gains[name].push((2 * rate) / (before + after));
    before = after;
    for (const [index, { tokens, speculation }] of given.entries()) {
      if (tokens.some((token, i) => token !== known[index][i])) different += 1;
      drafts[name].drafted += speculation?.drafted ?? 0;
      drafts[name].accepted += speculation?.accepted ?? 0;
    }
  }
await memory.close();
report({ rates, gains, drafts, different });
