// @ts-check
/** Documents in the order of how well they fit a query. Give a model that was trained for it: node 15-rerank.mjs hf:owner/repository:Q8_0 */
import { createRuntime } from 'onpolicy';

const [model] = process.argv.slice(2);
const runtime = await createRuntime(model ? { model } : {});
const query = 'What is the capital of Peru?';
const documents = ['Bananas are yellow.', 'The capital of Peru is Lima.', 'The capital of Spain is Madrid.'];

const { results } = await runtime.rerank({ query, documents });
for (const { relevance_score, document } of results)
  console.log(`${relevance_score.toFixed(3)}  ${document?.text}`);

const { data } = await runtime.score({ text_1: 'Lima', text_2: ['a city in Peru', 'a yellow fruit'] });
console.log(`Lima: ${data.map(({ score }) => score.toFixed(3)).join(' as a city, ')} as a fruit`);
await runtime.close();
