// Settings -> memory after some numbers of requests through a client and a server in this process. Runs with --expose-gc.
import { connect, createRuntime, serve } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { requests, parallel = 16, outputTokens = 4 } = settingsOfProcess();
const runtime = await createRuntime({ gpu: false, threads: 1, contextSize: 512, maxSequences: parallel });
const server = await serve(runtime, { tokens: ['secret'] });
const client = connect({ baseUrl: server.url, apiKey: 'secret' });

/** One of each kind in turn: whole, streamed, left early, faulty, refused. */
async function one(index) {
  const request = {
    messages: [{ role: 'user', content: wordPrompt(4 + (index % 12), index) }],
    max_completion_tokens: outputTokens,
    ignore_eos: true,
    seed: index,
  };
  switch (index % 5) {
    case 0:
      return await client.createCompletion(request);
    case 1:
      for await (const _chunk of await client.createCompletion({ ...request, stream: true }));
      return;
    case 2:
      for await (const _chunk of await client.createCompletion({ ...request, stream: true })) break;
      return;
    case 3:
      return await client.createCompletion({ ...request, model: `none-${index}` }).catch(() => {});
    default:
      return await (await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{' })).text();
  }
}

let next = 0;
async function memoryAfter(count) {
  const work = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: parallel }, work));
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return process.memoryUsage();
}

const residentMb = []; // one for each of `requests`
const heapMb = [];
for (const count of requests) {
  const { rss, heapUsed } = await memoryAfter(count);
  residentMb.push(rss / 2 ** 20);
  heapMb.push(heapUsed / 2 ** 20);
}
await client.close();
await server.close();
await runtime.close();
report({ residentMb, heapMb });
