// Settings -> the time of questions about a new state, about a cached one, of the same as chat completions, and of a single one.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { askedTexts, newState, time } from './asked.mjs';

const { model, threads, questions: count, stateTokens, seed } = settingsOfProcess();
const runtime = await createRuntime({
  model: { path: model },
  ...(threads ? { threads } : {}),
  contextSize: stateTokens + 1024,
});

const asked = askedTexts(count);
const questions = asked.map((instructions) => ({ type: 'predicate', instructions }));
const stateOf = (number) =>
  newState(number, stateTokens, async (text) => (await runtime.tokenize(text)).length);

/** The time of some work, and the steps of the engine and the tokens that these computed. */
async function counted(work) {
  const before = runtime.stats();
  const taken = await time(work);
  const { steps, promptTokens } = runtime.stats();
  return { ...taken, steps: steps - before.steps, tokens: promptTokens - before.promptTokens };
}

/** The same questions as requests for one token each, with the probabilities of yes and no. */
async function asChats(state, ids) {
  await Promise.all(
    asked.map((text) =>
      runtime.createCompletion({
        messages: [{ role: 'user', content: `${state}\n\n${text} Answer yes or no.` }],
        max_completion_tokens: 1,
        temperature: 0,
        reasoning_effort: 'none',
        logprobs: true,
        logprob_token_ids: ids,
      }),
    ),
  );
}

const [yes] = await runtime.tokenize('yes');
const [no] = await runtime.tokenize('no');
await runtime.decide({ input: 'Hello.', questions: questions.slice(0, 1) });
const state = await stateOf(2 * seed);
const other = await stateOf(2 * seed + 1);
let usage;
const measures = {
  new: () => counted(async () => ({ usage } = await runtime.decide({ input: state, questions }))),
  cached: () =>
    time(() => {
      const others = questions.map(({ type, instructions }) => ({
        type,
        instructions: `Now: ${instructions}`,
      }));
      return runtime.decide({ input: state, questions: others });
    }),
  chats: () => counted(() => asChats(other, [yes, no])),
};
/** Decisions and chats come first in turns, because what comes later finds a warmer machine. */
const order = seed % 2 === 0 ? ['new', 'cached', 'chats'] : ['chats', 'new', 'cached'];
const taken = {};
for (const name of order) taken[name] = await measures[name]();
/** The first questions about short texts, in turns with completions: both take milliseconds. */
const singles = [];
for (let i = 0; i < 10; i++) {
  const one = await time(() =>
    runtime.decide({ input: `Note ${seed} ${i}.`, questions: questions.slice(0, 1) }),
  );
  const completion = await time(() =>
    runtime.createCompletion({
      messages: [{ role: 'user', content: `Memo ${seed} ${i}.\n\n${asked[0]} Answer yes or no.` }],
      max_completion_tokens: 1,
      temperature: 0,
      reasoning_effort: 'none',
      logprobs: true,
    }),
  );
  singles.push({ one, completion });
}
await runtime.close();
report({ ...taken, singles, inputTokens: usage.input_tokens });
