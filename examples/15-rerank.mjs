// @ts-check
/**
 * Documents in the order of how well they fit a query. A right order needs a model that was trained for it, such as Qwen3-Reranker-0.6B
 * (0.6 GB): node 15-rerank.mjs hf:owner/repository:Q8_0. Without one the program writes a model that counts common words.
 */
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from 'onpolicy';
import { writeWordVectors } from './lib/word-vectors.mjs';

const query = 'What is the capital of Peru?';
const documents = ['Bananas are yellow.', 'The capital of Peru is Lima.', 'The capital of Spain is Madrid.'];
const lima = { text_1: 'Lima in Peru', text_2: ['a city in Peru', 'a yellow fruit'] };

let [model] = process.argv.slice(2);
if (!model) {
  model = path.join(os.tmpdir(), 'onpolicy-words.gguf');
  writeWordVectors(model, [query, ...documents, lima.text_1, ...lima.text_2]);
}
const runtime = await createRuntime({ model });

const { results } = await runtime.rerank({ query, documents });
for (const { relevance_score, document } of results)
  console.log(`${relevance_score.toFixed(3)}  ${document?.text}`);

const { data } = await runtime.score(lima);
console.log(`Lima: ${data.map(({ score }) => score.toFixed(3)).join(' as a city, ')} as a fruit`);
await runtime.close();
