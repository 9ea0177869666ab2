// @ts-check
/** Ending a request early: by a signal, as with fetch, or by leaving the loop of a stream. */
import { createCompletion, OnpolicyError } from 'onpolicy';

/** @type {import('onpolicy').Message[]} */
const messages = [{ role: 'user', content: 'Tell me a story.' }];

const controller = new AbortController();
setTimeout(() => controller.abort(), 20);
try {
  // ignore_eos: without the signal this would run until the context is full.
  await createCompletion({ messages, ignore_eos: true }, { signal: controller.signal });
} catch (error) {
  if (!(error instanceof OnpolicyError)) throw error;
  console.log(`the signal ended it: ${error.code}`);
}

let text = '';
for await (const chunk of await createCompletion({ messages, ignore_eos: true, stream: true, seed: 1 })) {
  text += chunk.choices[0]?.delta.content ?? '';
  if (text.length > 40) break;
}
console.log(`left the stream after: ${text}`);
