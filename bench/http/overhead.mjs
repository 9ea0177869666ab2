// Settings -> time to the first token and rate of 32 streams: in process, and through a client and a server in the same process.
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createRuntime, serve } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { barePair } from './bare.mjs';

const {
  model,
  threads,
  rounds,
  warmUps = 3000,
  triples = 150,
  streams = 32,
  outputTokens = 24,
} = settingsOfProcess();
const runtime = await createRuntime({ model, gpu: false, threads, contextSize: 512, maxSequences: streams });

/** The prompt is cached after its first use, so one engine step and the wire remain. */
const request = {
  messages: [{ role: 'user', content: wordPrompt(16, 0) }],
  max_completion_tokens: 2,
  ignore_eos: true,
  stream: true,
  seed: 1,
};
const recorded = []; // chunks of the answer
for await (const chunk of await runtime.createCompletion(request)) recorded.push(chunk);

/** The times at which the runtime accepted the last request and gave its first token. */
const record = { begunMs: 0, tokenMs: 0, isRecorded: false };

/** The runtime, timed; or its recorded answers. */
const timed = {
  createCompletion: async (request, options) => {
    const stream = record.isRecorded ? replay() : await runtime.createCompletion(request, options);
    record.begunMs = performance.now();
    record.tokenMs = 0;
    const chunks = stream[Symbol.asyncIterator]();
    const next = chunks.next.bind(chunks);
    chunks.next = async () => {
      const chunk = await next();
      if (!chunk.value?.choices[0]?.delta.role) record.tokenMs ||= performance.now();
      return chunk;
    };
    return stream;
  },
};

function replay() {
  const chunks = recorded.values();
  const iterator = { next: async () => chunks.next(), return: async () => ({ done: true }) };
  return { [Symbol.asyncIterator]: () => iterator, abort: () => {} };
}

const server = await serve(timed);
const client = connect({ baseUrl: server.url });

async function firstTokenMs(service) {
  let firstMs = 0;
  for await (const { choices } of await service.createCompletion(request))
    if (!choices[0]?.delta.role) firstMs ||= performance.now();
  return firstMs;
}

// The same bytes at the same times, without encoding and parsing.
const requestText = JSON.stringify(request);
const eventTexts = recorded.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
const bare = await barePair(async (write) => {
  let sent = 0;
  for await (const { choices } of await timed.createCompletion(request)) {
    if (choices[0]?.delta.role) continue; // goes out with what comes next
    write(eventTexts.slice(sent, sent === 0 ? 2 : undefined).join(''));
    sent = 2;
  }
  write('data: [DONE]\n\n');
});

/** A pause between requests, so that work left by one does not slow the next. */
const PAUSE_MS = 5;

const ways = {
  direct: () => firstTokenMs(timed),
  remote: () => firstTokenMs(client),
  bare: () => bare.ask(requestText),
};

/** Measures one request: the time to its first token, and the part of it outside the runtime. */
async function timeOnce(way) {
  if (!record.isRecorded) await sleep(PAUSE_MS);
  const startMs = performance.now();
  const firstMs = await ways[way]();
  return { wholeMs: firstMs - startMs, aroundMs: record.begunMs - startMs + (firstMs - record.tokenMs) };
}

// The steps of a large model vary by more than the wire costs. So the time before the runtime accepts a request and after it
// gives the token is compared, for requests made in turn.
record.isRecorded = true; // until the wire's code is compiled as in a server that has run for a while
for (let i = 0; i < warmUps; i++) for (const way of Object.keys(ways)) await timeOnce(way);
record.isRecorded = false;
const first = { directMs: [], remoteMs: [], addedMs: [], bareMs: [], wholeMs: [] };
for (let triple = -20; triple < triples; triple++) {
  const names = Object.keys(ways);
  const times = {};
  for (const way of triple % 2 ? names : names.reverse()) times[way] = await timeOnce(way);
  if (triple < 0) continue;
  const { direct, remote, bare } = times;
  first.directMs.push(direct.wholeMs);
  first.remoteMs.push(remote.wholeMs);
  first.wholeMs.push(remote.wholeMs - direct.wholeMs);
  first.addedMs.push(remote.aroundMs - direct.aroundMs);
  first.bareMs.push(bare.aroundMs - direct.aroundMs);
}

async function tokensPerSecond(service, round) {
  const clock = new TokenClock(streams);
  const read = async (index) => {
    const stream = await service.createCompletion({
      messages: [{ role: 'user', content: wordPrompt(16, 1 + round * streams + index) }],
      max_completion_tokens: outputTokens,
      ignore_eos: true,
      return_token_ids: true,
      stream: true,
      seed: index,
    });
    for await (const { choices } of stream) for (const _id of choices[0]?.token_ids ?? []) clock.tick(index);
  };
  await Promise.all(Array.from({ length: streams }, (_, index) => read(index)));
  return clock.tokensPerSecond();
}

const rates = { direct: [], remote: [] };
for (let round = 0; round < rounds; round++) {
  rates.direct.push(await tokensPerSecond(runtime, 2 * round));
  rates.remote.push(await tokensPerSecond(client, 2 * round + 1));
}
bare.close();
await client.close();
await server.close();
await runtime.close();
report({ first, rates });
