// @ts-check
/** One question, one answer. The embedded model answers; `model: 'path/to/file.gguf'` names another one. */
import { createCompletion } from 'onpolicy';

const answer = await createCompletion({
  messages: [
    { role: 'system', content: 'You are a helpful assistant.' },
    { role: 'user', content: 'What is the capital of Peru?' },
  ],
  temperature: 0,
});

console.log(answer.choices[0]?.message.content);
console.log(`${answer.usage.prompt_tokens} tokens read, ${answer.usage.completion_tokens} generated`);
