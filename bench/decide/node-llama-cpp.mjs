// Settings -> the time of node-llama-cpp's own decisions: so many yes/no questions about a new state.
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { openLlama } from '../peers/open-llama.mjs';
import { askedTexts, newState, time } from './asked.mjs';

const {
  model: modelPath,
  threads,
  questions: count,
  stateTokens,
  seed,
  parallelQuestions,
} = settingsOfProcess();
const llama = await openLlama(threads);
const model = await llama.loadModel({ modelPath });
const context = await model.createDecisionContext({
  contextSize: stateTokens + 1024,
  parallelQuestions,
  threads,
  ignoreMemorySafetyChecks: true,
});
const questions = Object.fromEntries(
  askedTexts(count).map((instruction, i) => [`q${i}`, { type: 'noul', instruction }]),
);
await context.decide('Hello.', { q: questions.q0 });
const state = await newState(seed, stateTokens, (text) => model.tokenize(text).length);
let inputTokens = 0;
const taken = await time(async () => {
  const { answers, tokenUsage } = await context.decideWithMeta(state, questions);
  if (Object.keys(answers).length !== count) throw new Error('a question was not answered');
  inputTokens = tokenUsage.input;
});
report({ ...taken, inputTokens });
