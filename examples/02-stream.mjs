// @ts-check
/** The same, piece by piece while the model writes. Leaving the loop early ends the request. */
import { createCompletion } from 'onpolicy';

const stream = await createCompletion({
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  stream: true,
  stream_options: { include_usage: true },
  temperature: 0.7,
  seed: 7, // the same seed, the same story
});

for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
  if (chunk.usage) console.log(`\n${chunk.usage.completion_tokens} tokens`);
}
