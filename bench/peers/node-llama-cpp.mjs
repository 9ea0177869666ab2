// Settings -> when tokens came: of node-llama-cpp's own API: one context, several sequences, its plain sampling.
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { sayReady } from '../lib/turns.mjs';
import { openLlama } from './open-llama.mjs';

const { model, warmUp, sequences, promptTokens, outputTokens, threads } = settingsOfProcess();

const llama = await openLlama(threads);

/** A model, and a context on it with so many sequences. */
async function load(modelPath, count, contextSize) {
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({
    sequences: count,
    contextSize,
    batchSize: 512,
    threads: { ideal: threads, min: threads },
    ignoreMemorySafetyChecks: true,
  });
  return { model, context };
}

/** Reads an answer of so many tokens to a prompt of so many. */
async function generate({ model, context }, index, promptTokens, tokens, onToken) {
  const sequence = context.getSequence();
  const prompt = model.tokenize(wordPrompt(promptTokens, index));
  const options = { temperature: 0.8, topK: 40, topP: 0.95, seed: 1 + index, yieldEogToken: true };
  let count = 0;
  for await (const _token of sequence.evaluate(prompt, options)) {
    count += 1;
    onToken();
    if (count === tokens) break;
  }
  sequence.dispose();
}

const small = await load(warmUp.model, 1, 1024);
for (let index = 0; index < warmUp.answers; index++)
  await generate(small, index, warmUp.promptTokens ?? promptTokens, warmUp.tokens, () => {});
await small.model.dispose();
const large = await load(model, sequences, Math.ceil((promptTokens + outputTokens) / 256) * 256);
const clock = new TokenClock(sequences, sayReady);
await Promise.all(
  Array.from({ length: sequences }, (_, index) =>
    generate(large, index, promptTokens, outputTokens, () => clock.tick(index)),
  ),
);
report({ timesMs: clock.timesMs });
