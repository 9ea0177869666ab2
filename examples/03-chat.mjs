// @ts-check
/** A conversation: every turn is sent with all turns before it, and what the model has read already is not computed again. */
import readline from 'node:readline';
import { createRuntime } from 'onpolicy';

const runtime = await createRuntime();
/** @type {import('onpolicy').Message[]} */
const messages = [{ role: 'system', content: 'You are a helpful assistant.' }];

const lines = readline.createInterface({ input: process.stdin });
process.stdout.write('Say something; an empty line ends it.\n> ');
for await (const line of lines) {
  if (line === '') break;
  messages.push({ role: 'user', content: line });
  let content = '';
  for await (const chunk of await runtime.createCompletion({ messages, stream: true, temperature: 0 })) {
    const piece = chunk.choices[0]?.delta.content ?? '';
    process.stdout.write(piece);
    content += piece;
  }
  messages.push({ role: 'assistant', content });
  process.stdout.write('\n> ');
}
lines.close();
await runtime.close();
