// A server's address, questions and their answers -> the outcome of many streams at once.
import { connect } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { url, streams, questions, answers } = settingsOfProcess();
const client = connect({ baseUrl: url, maxRetries: 0 });
const outcome = { complete: 0, correct: 0, tokens: 0, firstMs: [], failures: [] };
const startMs = performance.now();

async function read(index) {
  const question = index % questions.length;
  let text = '';
  let isComplete = false;
  let firstMs;
  const stream = await client.createCompletion({
    messages: [{ role: 'user', content: questions[question] }],
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const { choices, usage } of stream) {
    firstMs ??= performance.now() - startMs;
    text += choices[0]?.delta.content ?? '';
    if (choices[0]?.finish_reason === 'stop') isComplete = true;
    outcome.tokens += usage?.completion_tokens ?? 0;
  }
  outcome.firstMs.push(firstMs);
  if (isComplete) outcome.complete += 1;
  if (text === answers[question]) outcome.correct += 1;
}

await Promise.all(
  Array.from({ length: streams }, (_, index) =>
    read(index).catch((error) => outcome.failures.push(`${error.code}: ${error.message}`)),
  ),
);
await client.close();
if (outcome.failures.length > 0) process.stderr.write(`${outcome.failures.slice(0, 3).join('\n')}\n`);
report({ ...outcome, seconds: (performance.now() - startMs) / 1000 });
