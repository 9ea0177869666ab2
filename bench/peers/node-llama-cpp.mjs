// Settings -> tokens per second of node-llama-cpp's own API: one context, several sequences, its plain sampling.
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { model: modelPath, sequences, promptTokens, outputTokens, threads } = settingsOfProcess();

const llama = await getLlama({
  gpu: false,
  build: 'never',
  progressLogs: false,
  logLevel: LlamaLogLevel.error,
  maxThreads: threads,
});
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({
  sequences,
  contextSize: Math.ceil((promptTokens + outputTokens) / 256) * 256,
  batchSize: 512,
  threads: { ideal: threads, min: threads },
  ignoreMemorySafetyChecks: true,
});

const clock = new TokenClock(sequences);

async function generate(index) {
  const sequence = context.getSequence();
  const prompt = model.tokenize(wordPrompt(promptTokens, index));
  const options = { temperature: 0.8, topK: 40, topP: 0.95, seed: 1 + index, yieldEogToken: true };
  for await (const _token of sequence.evaluate(prompt, options)) {
    clock.tick(index);
    if (clock.count(index) === outputTokens) break;
  }
}

await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
report({ ...clock.figures(), peakMb: process.resourceUsage().maxRSS / 1024 });
