// Settings -> time to the first token and rate of 32 streams: in process, and through a client and a server in the same process.
import { connect, createRuntime, serve } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const {
  model,
  threads,
  rounds,
  warmUps = 200,
  pairs = 100,
  streams = 32,
  outputTokens = 24,
} = settingsOfProcess();
const runtime = await createRuntime({ model, gpu: false, threads, contextSize: 512, maxSequences: streams });

/** When the server asked the service, and when it took the first token of the answer. */
const door = { askedMs: 0, tokenMs: 0 };
const server = await serve({
  createCompletion: async (request, options) => {
    door.askedMs = performance.now();
    door.tokenMs = 0;
    const stream = await runtime.createCompletion(request, options);
    const chunks = stream[Symbol.asyncIterator]();
    const next = chunks.next.bind(chunks);
    chunks.next = async () => {
      const chunk = await next();
      if (!chunk.value?.choices[0]?.delta.role) door.tokenMs ||= performance.now();
      return chunk;
    };
    return stream;
  },
});
const client = connect({ baseUrl: server.url });

/** The prompt is cached after its first use: what remains is one step of the engine, and the wire. */
async function timeFirstToken(service) {
  const startMs = performance.now();
  let endMs = 0;
  const stream = await service.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(16, 0) }],
    max_completion_tokens: 2,
    ignore_eos: true,
    stream: true,
    seed: 1,
  });
  for await (const { choices } of stream) if (!choices[0]?.delta.role) endMs ||= performance.now();
  return { startMs, endMs };
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

// Of one request: what lies before the service is asked and after it gives the token. Steps of a large model take longer
// one time than another by more than that, so the difference of two requests would say little.
const first = { directMs: [], remoteMs: [], addedMs: [] };
for (let pair = -warmUps; pair < pairs; pair++) {
  const direct = await timeFirstToken(runtime);
  const remote = await timeFirstToken(client);
  if (pair < 0) continue; // the first requests run code that is not compiled yet
  first.directMs.push(direct.endMs - direct.startMs);
  first.remoteMs.push(remote.endMs - remote.startMs);
  first.addedMs.push(door.askedMs - remote.startMs + (remote.endMs - door.tokenMs));
}
const rates = { direct: [], remote: [] };
for (let round = 0; round < rounds; round++) {
  rates.direct.push(await tokensPerSecond(runtime, 2 * round));
  rates.remote.push(await tokensPerSecond(client, 2 * round + 1));
}
await client.close();
await server.close();
await runtime.close();
report({ first, rates });
