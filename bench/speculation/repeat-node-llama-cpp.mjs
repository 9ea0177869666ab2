// Settings -> tokens per second of an answer of node-llama-cpp, and its text; with `speculation` its predictor looks into the prompt.
import { InputLookupTokenPredictor } from 'node-llama-cpp';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { openLlama } from '../peers/open-llama.mjs';

const { model: modelPath, threads, contextSize, prompt, outputTokens, speculation } = settingsOfProcess();
const llama = await openLlama(threads);
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize, threads: { ideal: threads, min: threads } });
const tokenPredictor = speculation ? new InputLookupTokenPredictor() : undefined;
const sequence = context.getSequence({ tokenPredictor });
const clock = new TokenClock(1);
const answer = [];
for await (const token of sequence.evaluate(model.tokenize(prompt), {
  temperature: 0,
  yieldEogToken: true,
})) {
  clock.tick(0);
  if (answer.push(token) === outputTokens) break;
}
report({ rate: clock.tokensPerSecond(), text: model.detokenize(answer) });
