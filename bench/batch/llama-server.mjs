// Settings -> rows a second of llama.cpp's own server, with as many slots as rows are in flight.
import { fileURLToPath } from 'node:url';
import { startLlamaServer } from '../llama-server.mjs';
import { report, settingsOfProcess } from '../measure.mjs';
import { inFlight, rowsOf } from './rows.mjs';

/** As many as this library has by default on the 0.6B shape. */
const KV_TOKENS = 32_768;

const { program, requests, inFlight: slots, threads, model } = settingsOfProcess();
const file = model ?? fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const words = ['--model', file, '--parallel', slots, '--ctx-size', KV_TOKENS, '--kv-unified', '--no-webui'];
const url = await startLlamaServer(program, [...words, '--threads', threads, '--threads-batch', threads]);

const startMs = performance.now();
await inFlight(
  rowsOf(requests, { model }),
  async ({ body }) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const { usage } = await response.json();
    if (usage?.completion_tokens !== body.max_tokens) throw new Error(`${usage?.completion_tokens} tokens`);
  },
  slots,
);
report({ rowsPerSecond: (1000 * requests) / (performance.now() - startMs) });
