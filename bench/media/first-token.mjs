// Settings -> milliseconds to the first token of a request with a new picture, of this library and of llama.cpp's server in turns.
import { createRuntime } from '../../dist/index.js';
import { startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { aboutPicture, pictureUri } from './pair.mjs';

const { pair, program, threads, rounds } = settingsOfProcess();
const { model, mmproj } = pair;
const runtime = await createRuntime({
  model: { path: model, mmproj },
  gpu: false,
  threads,
  contextSize: 1024,
  maxSequences: 1,
});
const words = [
  '--model',
  model,
  '--mmproj',
  mmproj,
  '--threads',
  threads,
  '--ctx-size',
  1024,
  '--parallel',
  1,
];
const server = program === null ? null : (await startLlamaServer(program, words)).url;

async function askServer(request) {
  const response = await fetch(`${server}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request),
  });
  if (!response.ok)
    throw new Error(`llama-server answered with ${response.status}: ${await response.text()}`);
  return await response.json();
}

/** Milliseconds of a whole answer of one token; both must have read the same prompt. */
async function time(ask, request) {
  const startMs = performance.now();
  const { usage } = await ask(request);
  return {
    ms: performance.now() - startMs,
    promptTokens: usage.prompt_tokens,
    details: usage.prompt_tokens_details,
  };
}

const ask = (request) => runtime.createCompletion(request);
const ours = [];
const theirs = [];
const cached = [];
let tokens = 0;
for (let round = 0; round < rounds; round++) {
  const url = pictureUri(round);
  const request = aboutPicture(url);
  const mine = await time(ask, request);
  tokens = mine.details.media_tokens;
  ours.push(mine.ms);
  cached.push((await time(ask, aboutPicture(url, 'And what else?'))).ms);
  if (!server) continue;
  const other = await time(askServer, request);
  if (other.promptTokens !== mine.promptTokens)
    throw new Error(`prompts differ: ${mine.promptTokens} tokens here, ${other.promptTokens} there`);
  theirs.push(other.ms);
}
await runtime.close();
report({ ours, theirs, cached, tokens });
