// @ts-check
/** How sure the model was: the log-probability of every token, and the best alternatives at its place. */
import { createCompletion } from 'onpolicy';

const answer = await createCompletion({
  messages: [{ role: 'user', content: 'What is 45 - 5?' }],
  temperature: 0,
  logprobs: true,
  top_logprobs: 3,
});

for (const { token, logprob, top_logprobs } of answer.choices[0]?.logprobs?.content ?? []) {
  const best = top_logprobs.map(
    (other) => `${JSON.stringify(other.token)} ${Math.exp(other.logprob).toFixed(2)}`,
  );
  console.log(`${JSON.stringify(token)}  probability ${Math.exp(logprob).toFixed(2)}  (${best.join(', ')})`);
}
