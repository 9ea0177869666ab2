// @ts-check
/** A hundred questions about one text, answered by probabilities in one pass: nothing is generated, and the text is computed once. */
import { createRuntime } from 'onpolicy';

const runtime = await createRuntime();
const pairs = Array.from({ length: 100 }, (_, i) => [11 + ((i * 37) % 88), 12 + ((i * 53) % 87)].map(Number));
const questions = pairs.map(([a, b]) => ({
  type: /** @type {const} */ ('predicate'),
  instructions: `Is ${a} greater than ${b}?`,
}));

const start = performance.now();
const { answers, usage } = await runtime.decide({ input: 'The numbers of the week are in.', questions });
const took = performance.now() - start;
const right = answers.filter(
  ({ probability }, i) => probability > 0.5 === (pairs[i]?.[0] ?? 0) > (pairs[i]?.[1] ?? 0),
);
console.log(`${right.length} of ${answers.length} right in ${took.toFixed(0)} ms`);
const { cached_tokens, cache_write_tokens } = usage.input_tokens_details;
console.log(
  `${usage.input_tokens} tokens read, ${cache_write_tokens} computed, ${cached_tokens} from the cache`,
);
const least = Math.min(...answers.map(({ label_mass }) => label_mass));
console.log(`at least ${least.toFixed(3)} of the probability is on yes and no`);

// The texts of the options are read where the model was taught no labels.
const { answers: opposites } = await runtime.decide({
  input: '',
  read: 'text',
  questions: {
    hot: {
      type: 'choice',
      instructions: 'What is the opposite of hot?',
      choices: [{ value: 'cold' }, { value: 'warm' }, { value: 'dry' }],
    },
  },
});
console.log(`the opposite of hot is ${opposites.hot.choice}`);
await runtime.close();
