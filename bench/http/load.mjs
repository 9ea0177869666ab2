// Settings -> how many of very many streams at once, from another process, are complete and correct. The embedded model answers.
import { createRuntime, serve } from '../../dist/index.js';
import { inProcess, report, settingsOfProcess } from '../lib/measure.mjs';

const { streams } = settingsOfProcess();
const questions = ['Japan', 'Egypt', 'Spain', 'Austria', 'Peru', 'France'].map(
  (country) => `What is the capital of ${country}?`,
);
const runtime = await createRuntime({ gpu: false, threads: 1, contextSize: 256, maxSequences: 64 });
const answers = [];
for (const content of questions) {
  const request = { messages: [{ role: 'user', content }], temperature: 0 };
  answers.push((await runtime.createCompletion(request)).choices[0].message.content);
}
const server = await serve(runtime);
const outcome = await inProcess('http/load-client.mjs', { url: server.url, streams, questions, answers });
await server.close();
await runtime.close();
report(outcome);
