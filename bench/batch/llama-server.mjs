// Settings -> rows a second of llama.cpp's own server, with as many slots as rows are in flight.
import { once } from 'node:events';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { inFlight, rowsOf } from './rows.mjs';

/** Context size of a slot. With a unified cache, this server computes prompts at two thirds of the speed. */
const CONTEXT_SIZE = 1024;

const { program, requests, inFlight: slots, threads, model } = settingsOfProcess();
const file = model ?? fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const words = ['--model', file, '--parallel', slots, '--ctx-size', slots * CONTEXT_SIZE, '--no-webui'];
const { url, cpuMs } = await startLlamaServer(program, [
  ...words,
  '--threads',
  threads,
  '--threads-batch',
  threads,
]);

const [startMs, startCpuMs] = [performance.now(), cpuMs()];
await inFlight(
  rowsOf(requests, { model }),
  // Answers of random weights that its parser of messages refuses count: they were computed.
  ({ body }) => ask(body),
  slots,
);
report({
  rowsPerSecond: (1000 * requests) / (performance.now() - startMs),
  cpuMs: (cpuMs() - startCpuMs) / requests,
});

/** Without the time limits of `fetch`: the last of 64 prompts may take minutes to its first token. */
async function ask(body) {
  const request = http.request(`${url}/v1/chat/completions`, { method: 'POST', agent: false });
  request.end(JSON.stringify(body));
  const [response] = await once(request, 'response');
  await json(response);
}
