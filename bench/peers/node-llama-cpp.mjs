// Settings -> tokens per second of node-llama-cpp's own API: one context, several sequences, its plain sampling.
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { report, settingsOfProcess, steadyRate } from '../measure.mjs';
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

async function generate(index) {
  const sequence = context.getSequence();
  const prompt = model.tokenize(wordPrompt(promptTokens, index));
  const timesMs = [];
  const options = { temperature: 0.8, topK: 40, topP: 0.95, seed: 1 + index, yieldEogToken: true };
  for await (const _token of sequence.evaluate(prompt, options)) {
    timesMs.push(performance.now());
    if (timesMs.length === outputTokens) break;
  }
  return timesMs;
}

const timesMs = await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
report({ ...steadyRate(timesMs), peakMb: process.resourceUsage().maxRSS / 1024 });
