// node scripts/check/soak.mjs [--requests N] [--lanes N] [--model FILE]: mixed requests over all wires of one server, with aborts, slow
// readers and bad input -> what was answered, and memory on the way. Exits with 1 where an answer is wrong, the server has an error of
// its own, or memory grows by more than 2 % after the first fifth. What is bounded is full by then: the store of responses is filled
// before, and the index of answers is small.
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import v8 from 'node:v8';
import { meta } from '../../bench/model/gguf.mjs';
import { widenGguf } from '../make/onnx/from-gguf.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const { createRuntime } = await import(path.join(root, 'dist/index.js'));
const { serve } = await import(path.join(root, 'dist/serve/http/index.js'));
const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '5000' },
    lanes: { type: 'string', default: '16' },
    model: { type: 'string', default: path.join(root, 'models', 'onpolicy-tiny.gguf') },
  },
});
const REQUESTS = Number(options.requests);
const LANES = Number(options.lanes);
/** Memory may grow so much after the first fifth. */
const GROWTH = 1.02;

/** More responses than are stored. */
const RESPONSES = 1100;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-soak-'));
const embedder = path.join(folder, 'embedder.gguf');
const tiny = path.join(root, 'models', 'onpolicy-tiny.gguf');
await widenGguf(tiny, embedder, { 'llama.pooling_type': meta.uint32(3) });
const runtime = await createRuntime({
  model: options.model,
  models: { embedder },
  answerIndexBytes: 2 ** 20,
  contextSize: 512,
  maxSequences: LANES,
});
const server = await serve(runtime, { port: 0 });
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 * LANES });
const counts = { answered: 0, left: 0, refused: 0, wrong: 0, failed: 0 };
const faults = [];

const chat = (i, more = {}) => ({
  messages: [{ role: 'user', content: `What is ${i % 50} plus ${i % 7}?` }],
  max_tokens: 4 + (i % 9),
  seed: i % 100,
  ...more,
});
const schema = {
  type: 'object',
  properties: { a: { enum: ['x', 'y'] } },
  required: ['a'],
  additionalProperties: false,
};
const format = { type: 'json_schema', json_schema: { name: 'a', schema } };
const tools = [
  {
    type: 'function',
    function: {
      name: 'f',
      parameters: {
        type: 'object',
        properties: { x: { type: 'integer' } },
        required: ['x'],
        additionalProperties: false,
      },
    },
  },
];
const isText = (value) => typeof value === 'string';
/** White space may fill an answer up to its last token. */
const holdsFormat = ({ choices: [{ message, finish_reason }] }) =>
  finish_reason === 'length' || ['x', 'y'].includes(JSON.parse(message.content).a);
const ended = (text, last) => text.includes(last) && !text.includes('"error":{');

/** Name, path, body, what is right of the answer; `stream`: its text. */
const KINDS = [
  ['chat', '/v1/chat/completions', (i) => chat(i), (body) => isText(body.choices[0].message.content)],
  [
    'chat, streamed',
    '/v1/chat/completions',
    (i) => chat(i, { stream: true }),
    (text) => ended(text, '[DONE]'),
  ],
  [
    'chat, n and logprobs',
    '/v1/chat/completions',
    (i) => chat(i, { n: 3, logprobs: true, top_logprobs: 2 }),
    (body) => body.choices.length === 3 && body.choices.every(({ logprobs }) => logprobs.content.length > 0),
  ],
  [
    'chat, schema',
    '/v1/chat/completions',
    (i) => chat(i, { response_format: format, max_tokens: 40 }),
    holdsFormat,
  ],
  [
    'chat, tool',
    '/v1/chat/completions',
    (i) => chat(i, { tools, tool_choice: 'required', max_tokens: 60 }),
    (body) => body.choices[0].finish_reason === 'length' || body.choices[0].message.tool_calls.length > 0,
  ],
  [
    'chat, samplers',
    '/v1/chat/completions',
    (i) => chat(i, { mirostat: i % 3, dry_multiplier: 0.8, xtc_probability: 0.5 }),
    (body) => body.usage.completion_tokens > 0,
  ],
  [
    'chat, beams',
    '/v1/chat/completions',
    (i) => ({ ...chat(i, { use_beam_search: true, n: 2 }), seed: null }),
    (body) => body.choices.length > 0,
  ],
  [
    'text',
    '/v1/completions',
    (i) => ({ prompt: [`Once ${i % 90}`, 'Two'], max_tokens: 6, logprobs: 1 }),
    (body) => body.choices.length === 2,
  ],
  [
    'text, streamed',
    '/v1/completions',
    (i) => ({ prompt: `Once ${i % 90}`, max_tokens: 6, stream: true }),
    (text) => ended(text, '[DONE]'),
  ],
  [
    'messages',
    '/v1/messages',
    (i) => ({ ...chat(i), thinking: { type: 'enabled', budget_tokens: 2 } }),
    (body) => body.type === 'message',
  ],
  [
    'messages, streamed',
    '/v1/messages',
    (i) => chat(i, { stream: true }),
    (text) => ended(text, 'message_stop'),
  ],
  [
    'responses',
    '/v1/responses',
    (i) => ({ input: `Say ${i % 60}.`, max_output_tokens: 6 }),
    (body) => body.object === 'response',
  ],
  [
    'responses, streamed',
    '/v1/responses',
    (i) => ({ input: `Say ${i % 60}.`, max_output_tokens: 6, stream: true, store: false }),
    (text) => /response\.(completed|incomplete)/.test(text),
  ],
  [
    'embeddings',
    '/v1/embeddings',
    (i) => ({ model: 'embedder', input: [`a text ${i % 80}`, 'another'] }),
    (body) => body.data.length === 2 && body.data[0].embedding.length > 0,
  ],
  [
    'embeddings, base64',
    '/v1/embeddings',
    (i) => ({ model: 'embedder', input: `a text ${i % 80}`, encoding_format: 'base64' }),
    (body) => isText(body.data[0].embedding),
  ],
  [
    "Ollama's chat",
    '/api/chat',
    (i) => ({ ...chat(i), stream: false, options: { num_predict: 6 } }),
    (body) => body.done && isText(body.message.content),
  ],
  [
    "Ollama's prompts, streamed",
    '/api/generate',
    (i) => ({ prompt: `Once ${i % 90}`, raw: true, stream: true, options: { num_predict: 6 } }),
    (text) => ended(text, '"done":true'),
  ],
  ['count tokens', '/v1/messages/count_tokens', (i) => chat(i), (body) => body.input_tokens > 0],
  ['tokenize', '/tokenize', (i) => ({ prompt: `some words ${i}` }), (body) => body.count > 0],
  ['render', '/v1/chat/completions/render', (i) => chat(i), (body) => body.count > 0],
];
/** Bodies that are refused, each with a status below 500. */
const BAD = [
  ['/v1/chat/completions', '{"messages":'],
  [
    '/v1/chat/completions',
    JSON.stringify({ messages: [{ role: 'user', content: 'x' }], temperature: 'hot' }),
  ],
  ['/v1/chat/completions', JSON.stringify({ messages: [{ role: 'user', content: 'word '.repeat(2000) }] })],
  [
    '/v1/chat/completions',
    JSON.stringify({
      messages: [{ role: 'user', content: 'x' }],
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'nothing' } } },
    }),
  ],
  ['/v1/completions', JSON.stringify({ prompt: [[-1]] })],
  ['/v1/messages', JSON.stringify({ messages: 5 })],
  ['/api/chat', JSON.stringify({ messages: [{ role: 'nobody' }] })],
  ['/v1/embeddings', JSON.stringify({ model: 'embedder', input: [] })],
  ['/v1/embeddings', JSON.stringify({ input: 'x' })],
  ['/v1/responses', JSON.stringify({ input: 'x', previous_response_id: 'resp_none' })],
  ['/v1/chat/completions', JSON.stringify({ model: 'no/such', messages: [] })],
  ['/nowhere', '{}'],
];

function send(where, body, onResponse) {
  return new Promise((resolve, reject) => {
    const request = http.request(new URL(where, server.url), {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', reject);
    request.on('response', (response) => onResponse(response, request).then(resolve, reject));
    request.end(body);
  });
}

async function read(response, pauseMs = 0) {
  const parts = [];
  for await (const part of response) {
    parts.push(part);
    if (pauseMs > 0) await sleep(pauseMs);
  }
  return Buffer.concat(parts).toString();
}

function note(kind, status, text) {
  if (status >= 500) counts.failed += 1;
  else counts.wrong += 1;
  if (faults.length < 20) faults.push(`${kind}: ${status} ${text.slice(0, 300)}`);
}

async function one(i) {
  if (i % 11 === 10) {
    const [where, body] = BAD[((i / 11) | 0) % BAD.length];
    const { status, text } = await send(where, body, async (response) => ({
      status: response.statusCode,
      text: await read(response),
    }));
    if (status >= 400 && status < 500) counts.refused += 1;
    else note(`bad ${where}`, status, text);
    return;
  }
  const [kind, where, make, isRight] = KINDS[i % KINDS.length];
  const asked = make(i);
  if (i % 13 === 12 && asked.stream) {
    // Left after its first bytes.
    await send(
      where,
      JSON.stringify({ ...asked, ...(asked.max_tokens ? { max_tokens: 200 } : {}) }),
      async (response, request) => {
        await new Promise((resolve) => response.once('data', resolve).once('end', resolve));
        request.destroy();
      },
    ).catch(() => {});
    counts.left += 1;
    return;
  }
  const pauseMs = i % 17 === 16 ? 5 : 0;
  const { status, text } = await send(where, JSON.stringify(asked), async (response) => ({
    status: response.statusCode,
    text: await read(response, pauseMs),
  }));
  let isGood = false;
  try {
    isGood = status === 200 && isRight(asked.stream ? text : JSON.parse(text));
  } catch {}
  if (isGood) counts.answered += 1;
  else note(kind, status, text);
}

/** At rest and after collections: what lives, and how much of the heap is compiled code. The first one leaves what has finalizers. */
async function memory() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await sleep(20);
  }
  const { heapUsed, rss, external } = process.memoryUsage();
  const code = v8
    .getHeapSpaceStatistics()
    .filter(({ space_name }) => space_name.startsWith('code'))
    .reduce((sum, { space_used_size }) => sum + space_used_size, 0);
  return { heap: heapUsed + external, code, rss };
}

for (let i = 0; i < RESPONSES; i++)
  await runtime.createResponse({ input: `Say ${i % 60}.`, max_output_tokens: 6 });

const marks = [];
const startMs = performance.now();
const ROUND = Math.ceil(REQUESTS / 20);
for (let done = 0; done < REQUESTS; ) {
  const end = Math.min(done + ROUND, REQUESTS);
  const lane = async () => {
    while (done < end) await one(done++);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  const mark = { done, ...(await memory()) };
  marks.push(mark);
  const [heap, code, rss] = [mark.heap, mark.code, mark.rss].map((bytes) => (bytes / 2 ** 20).toFixed(1));
  const seconds = Math.round((performance.now() - startMs) / 1000);
  console.log(`${done} requests, ${seconds} s: heap ${heap} MiB, of which code ${code}, resident ${rss} MiB`);
}
agent.destroy();
await server.close();
await runtime.close();
fs.rmSync(folder, { recursive: true });

const later = marks.filter((mark) => mark.done > REQUESTS / 5);
const base = marks.findLast((mark) => mark.done <= REQUESTS / 5) ?? marks[0];
const growth = (field) => Math.max(...later.slice(-4).map((mark) => mark[field])) / base[field];
const [heap, resident] = [growth('heap'), growth('rss')];
console.log(
  JSON.stringify({
    requests: REQUESTS,
    ...counts,
    seconds: Math.round((performance.now() - startMs) / 1000),
    heapGrowth: Number(heap.toFixed(4)),
    residentGrowth: Number(resident.toFixed(4)),
  }),
);
for (const fault of faults) console.error(fault);
if (!globalThis.gc) console.error('the heap is measured without collections: run node --expose-gc');
if (counts.wrong > 0 || counts.failed > 0 || heap > GROWTH || resident > GROWTH) process.exitCode = 1;
