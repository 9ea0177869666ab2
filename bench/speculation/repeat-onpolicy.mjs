// Settings -> tokens per second of an answer of this library, and its text. `speculation` is the field of the request.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess, sharedMs } from '../lib/measure.mjs';

const { model, threads, contextSize, prompt, prediction, outputTokens, speculation } = settingsOfProcess();
const runtime = await createRuntime({ model: { path: model, contextSize, threads }, gpu: false });
const chunks = await runtime.createTextCompletion({
  prompt,
  max_tokens: outputTokens,
  temperature: 0,
  speculation,
  stream: true,
  stream_options: { include_usage: true },
  ...(prediction && speculation ? { prediction: { type: 'content', content: prediction } } : {}),
});
const timesMs = [];
let text = '';
let tokens = 0;
for await (const { choices, usage } of chunks) {
  if (choices.length > 0) timesMs.push(sharedMs());
  text += choices[0]?.text ?? '';
  tokens = usage?.completion_tokens ?? tokens;
}
await runtime.close();
report({ rate: (1000 * (tokens - 1)) / (timesMs.at(-1) - timesMs[0]), text });
