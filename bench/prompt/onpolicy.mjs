// Settings -> for each number read, a line with the milliseconds of a new prompt of so many tokens: from the request to its only token.
import { createInterface } from 'node:readline';
import { createRuntime } from '../../dist/index.js';
import { settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, mostTokens } = settingsOfProcess();
const contextSize = Math.ceil((mostTokens + 1) / 256) * 256;

const runtime = await createRuntime({ model, gpu: false, threads, contextSize, maxSequences: 1 });
let index = 0;

async function ask(promptTokens) {
  index += 1;
  const start = performance.now();
  const { usage } = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(promptTokens, index) }],
    chat_template: '{{ messages[0].content }}',
    max_completion_tokens: 1,
    ignore_eos: true,
  });
  const ms = performance.now() - start;
  if (Math.abs(usage.prompt_tokens - promptTokens) > 2)
    throw new Error(`the prompt has ${usage.prompt_tokens} tokens, ${promptTokens} were asked for`);
  return ms;
}

// The whole cache is written once before, as bare llama_decode's is when it is made: the system gives memory at the first write.
do await ask(mostTokens);
while (runtime.stats().promptTokens < runtime.stats().kvTokens);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${(await ask(Number(line))).toFixed(3)}\n`);
await runtime.close();
