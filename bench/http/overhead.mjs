// Settings -> time to the first token and rate of 32 streams: in process, and through a client and a server in the same process.
import { connect, createRuntime, serve } from '../../dist/index.js';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { model, threads, rounds, pairs = 25, streams = 32, outputTokens = 24 } = settingsOfProcess();
const runtime = await createRuntime({ model, gpu: false, threads, contextSize: 512, maxSequences: streams });
const server = await serve(runtime);
const client = connect({ baseUrl: server.url });

/** The prompt is cached after its first use: what remains is one step of the engine, and the wire. */
async function firstTokenMs(service) {
  const startMs = performance.now();
  const stream = await service.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(16, 0) }],
    max_completion_tokens: 2,
    ignore_eos: true,
    stream: true,
    seed: 1,
  });
  let firstMs;
  for await (const { choices } of stream)
    firstMs ??= choices[0]?.delta.role ? undefined : performance.now() - startMs;
  return firstMs;
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
  return clock.figures().tokensPerSecond;
}

const first = { directMs: [], remoteMs: [] };
for (const service of [runtime, client]) for (let i = 0; i < 5; i++) await firstTokenMs(service); // warms up
for (let pair = 0; pair < pairs; pair++) {
  first.directMs.push(await firstTokenMs(runtime));
  first.remoteMs.push(await firstTokenMs(client));
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
