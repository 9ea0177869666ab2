// Settings -> tokens per second of an answer of llama.cpp's own server, and its text; `speculation` names its way to draft.
import { eventsOf, startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';

const { program, model, threads, contextSize, prompt, outputTokens, speculation } = settingsOfProcess();
const words = ['--model', model, '--parallel', 1, '--ctx-size', contextSize, '--no-webui'];
words.push('--threads', threads, '--threads-batch', threads);
if (speculation) words.push('--spec-type', speculation);
const { url } = await startLlamaServer(program, words);
const response = await fetch(`${url}/completion`, {
  method: 'POST',
  body: JSON.stringify({ prompt, n_predict: outputTokens, ignore_eos: true, temperature: 0, stream: true }),
});
const clock = new TokenClock(1);
let text = '';
for await (const { tokens = [], content } of eventsOf(response.body)) {
  for (const _token of tokens) clock.tick(0);
  text += content;
}
report({ rate: clock.tokensPerSecond(), text });
