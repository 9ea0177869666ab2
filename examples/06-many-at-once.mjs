// @ts-check
/** Requests that run at the same time share the engine's steps, and choices of one request share its prompt. */
import { createRuntime } from 'onpolicy';

const runtime = await createRuntime({ maxSequences: 32 });

const countries = ['Japan', 'Egypt', 'Spain', 'Austria'];
const answers = await Promise.all(
  countries.map((country) =>
    runtime.createCompletion({
      messages: [{ role: 'user', content: `What is the capital of ${country}?` }],
      temperature: 0,
    }),
  ),
);
for (const answer of answers) console.log(answer.choices[0]?.message.content);

const stories = await runtime.createCompletion({
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  n: 4,
  seed: 1,
});
for (const { index, message } of stories.choices) console.log(`${index}: ${message.content}`);
console.log(`${runtime.stats().generatedTokens} tokens in ${runtime.stats().steps} steps`);
await runtime.close();
