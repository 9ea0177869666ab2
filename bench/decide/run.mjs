// Settings -> milliseconds of each round: questions about a new state, about a cached one, and the same as chat completions, in turns.
import { createRuntime } from '../../dist/index.js';

const {
  model,
  threads,
  rounds = 5,
  questions: count = 100,
  stateTokens = 2000,
} = JSON.parse(process.argv[2]);
const runtime = await createRuntime({
  ...(model ? { model: { path: model } } : {}),
  ...(threads ? { threads } : {}),
  contextSize: stateTokens + 1024,
});

/** A text of about so many tokens that no other round has the beginning of. */
async function newState(seed) {
  let text = `Report ${seed}.`;
  for (let i = 0; (await runtime.tokenize(text)).length < stateTokens - 40; i++)
    text += ` Item ${(seed * 7919 + i * 104729) % 99991} was counted by the team in room ${i % 17}.`.repeat(
      8,
    );
  return text;
}

const asked = Array.from({ length: count }, (_, i) => `Is item ${i + 100} greater than ${i + 50}?`);
const questions = asked.map((instructions) => ({ type: 'predicate', instructions }));

async function time(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
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

const report = {
  newMs: [],
  cachedMs: [],
  chatsMs: [],
  oneMs: [],
  completionMs: [],
  inputTokens: 0,
  computedTokens: 0,
};
const [yes] = await runtime.tokenize('yes');
const [no] = await runtime.tokenize('no');
await runtime.decide({ input: 'Hello.', questions: questions.slice(0, 1) });
for (let round = 0; round < rounds; round++) {
  const state = await newState(2 * round);
  let usage;
  report.newMs.push(await time(async () => ({ usage } = await runtime.decide({ input: state, questions }))));
  report.inputTokens = usage.input_tokens;
  report.computedTokens = usage.input_tokens_details.cache_write_tokens;
  const others = questions.map(({ type, instructions }) => ({ type, instructions: `Now: ${instructions}` }));
  report.cachedMs.push(await time(() => runtime.decide({ input: state, questions: others })));
  const other = await newState(2 * round + 1);
  report.chatsMs.push(await time(() => asChats(other, [yes, no])));
  const small = `Note ${round}.`;
  report.oneMs.push(await time(() => runtime.decide({ input: small, questions: questions.slice(0, 1) })));
  report.completionMs.push(
    await time(() =>
      runtime.createCompletion({
        messages: [{ role: 'user', content: `Memo ${round}.\n\n${asked[0]} Answer yes or no.` }],
        max_completion_tokens: 1,
        temperature: 0,
        logprobs: true,
      }),
    ),
  );
}
await runtime.close();
process.stdout.write(`${JSON.stringify(report)}\n`);
