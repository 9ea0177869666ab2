// Settings -> tokens per second of llama.cpp's own server: `program` is its binary, `logprobs` asks it for 5 tops a token.
import { eventsOf, startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { sayReady } from '../lib/turns.mjs';

const { program, model, sequences, promptTokens, outputTokens, threads, logprobs } = settingsOfProcess();
const contextSize = Math.ceil((promptTokens + outputTokens) / 256) * 256;

const words = [
  '--model',
  model,
  '--parallel',
  sequences,
  '--ctx-size',
  contextSize * sequences,
  '--no-webui',
];
words.push('--threads', threads, '--threads-batch', threads);
const { url } = await startLlamaServer(program, words);

const clock = new TokenClock(sequences, sayReady);

async function generate(index) {
  const response = await fetch(`${url}/completion`, {
    method: 'POST',
    body: JSON.stringify({
      prompt: wordPrompt(promptTokens, index),
      n_predict: outputTokens,
      ignore_eos: true,
      temperature: 0.8,
      top_k: 40,
      top_p: 0.95,
      min_p: 0.05,
      repeat_penalty: 1.1,
      frequency_penalty: 0.1,
      seed: 1 + index,
      n_probs: logprobs ? 5 : 0,
      stream: true,
    }),
  });
  for await (const { tokens = [] } of eventsOf(response.body)) for (const _token of tokens) clock.tick(index);
}

await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
report({ timesMs: clock.timesMs });
