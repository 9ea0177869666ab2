// Settings -> vectors per second of 64 texts: in process, over HTTP, in the engine's own mode of embeddings, and in llama.cpp's server.

import { createRuntime, serve } from '../../dist/index.js';
import { loadGguf } from '../../dist/models/formats/index.js';
import { startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, rounds, program } = settingsOfProcess();
const TEXTS = 64;
const TEXT_TOKENS = 32;
/** Tokens of a batch, as in this library. */
const BATCH_TOKENS = 512;

const runtime = await createRuntime({ model, gpu: false, threads });
const server = await serve(runtime, { port: 0 });
const plain = await loadGguf({ path: model, gpu: false, kernels: 'plain' });
const batchTokens = BATCH_TOKENS;
const own = await plain.createEmbedder({ batchTokens, maxSequences: TEXTS, threads, isLast: false });
const llamaServer =
  program &&
  (
    await startLlamaServer(program, [
      '--model',
      model,
      '--embeddings',
      '--threads',
      threads,
      '--parallel',
      TEXTS,
      '--kv-unified',
      '--ctx-size',
      8192,
      '--batch-size',
      2048,
      '--ubatch-size',
      2048,
    ])
  ).url;

async function overHttp(url, input) {
  const body = JSON.stringify({ input, encoding_format: 'float' });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/embeddings`, { method: 'POST', headers, body });
  const { data } = await response.json();
  return data.map(({ embedding }) => embedding);
}

/** As many texts in a batch as fit. */
async function inEngine(input) {
  const rows = [];
  let batch = [];
  const compute = async () => {
    const tokens = Int32Array.from(batch.flatMap((ids) => Array.from(ids)));
    const vectors = await own.embed(
      tokens,
      Int32Array.from(batch, (ids) => ids.length),
    );
    for (let i = 0; i < batch.length; i++) rows.push(vectors.subarray(i * own.size, (i + 1) * own.size));
    batch = [];
  };
  for (const text of input) {
    const ids = await plain.tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
    if (batch.reduce((sum, other) => sum + other.length, ids.length) > BATCH_TOKENS) await compute();
    batch.push(ids);
  }
  await compute();
  return rows;
}

const HERE = 'in process';
const WAYS = {
  [HERE]: async (input) => (await runtime.createEmbeddings({ input })).data.map(({ embedding }) => embedding),
  'over HTTP': (input) => overHttp(server.url, input),
  "the engine's own mode": inEngine,
  ...(llamaServer ? { "llama.cpp's server": (input) => overHttp(llamaServer, input) } : {}),
};
const PEERS = Object.keys(WAYS).slice(2);

function cosine(one, other) {
  let [dot, square, otherSquare] = [0, 0, 0];
  for (let i = 0; i < one.length; i++) {
    dot += one[i] * other[i];
    square += one[i] ** 2;
    otherSquare += other[i] ** 2;
  }
  return dot / Math.sqrt(square * otherSquare);
}

const rates = Object.fromEntries(Object.keys(WAYS).map((name) => [name, []]));
const cosines = Object.fromEntries(PEERS.map((name) => [name, 1]));
for (let round = -1; round < rounds; round++) {
  const texts = Array.from({ length: TEXTS }, (_, i) => wordPrompt(TEXT_TOKENS, TEXTS * (round + 1) + i));
  const vectors = {};
  for (const [name, embed] of Object.entries(WAYS)) {
    const startMs = performance.now();
    vectors[name] = await embed(texts);
    const seconds = (performance.now() - startMs) / 1000;
    if (round >= 0) rates[name].push(TEXTS / seconds); // the first round warms up
  }
  for (const name of PEERS)
    for (const [i, vector] of vectors[name].entries())
      cosines[name] = Math.min(cosines[name], cosine(vector, vectors[HERE][i]));
}
report({ rates, cosines });
await own.close();
await server.close();
await runtime.close();
process.exit(0);
