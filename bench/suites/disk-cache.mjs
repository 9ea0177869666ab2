// A prompt of 8,000 tokens, computed and after a restart -> seconds to the first token, bytes on the disk, what saving costs.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { result } from '../lib/measure.mjs';
import { ensureModel } from '../model/make.mjs';

const TOKENS = 8000;
const TYPES = ['f16', 'q8_0'];

/** Runs the parts. `only`: types of the KV cache. */
export async function run({ model = ensureModel(), threads, only = TYPES, log = () => {} } = {}) {
  const rows = [];
  for (const cacheType of only) {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-disk-'));
    const open = () =>
      createRuntime({
        model: { path: model, cacheType, contextSize: TOKENS + 64, maxSequences: 1 },
        diskCacheBytes: 2 ** 33,
        home,
        threads,
        gpu: false,
      });
    try {
      log(`disk-cache: ${cacheType}, computed`);
      const computing = await firstToken(await open());
      log(`disk-cache: ${cacheType}, after a restart`);
      const loading = await firstToken(await open());
      if (loading.cached < 0.9 * TOKENS) throw new Error(`only ${loading.cached} tokens came from the disk`);
      rows.push(
        result(`${cacheType}: first token, computed`, 's', [computing.seconds]),
        result(`${cacheType}: first token, from the disk`, 's', [loading.seconds], {
          computed: loading.seconds / computing.seconds,
        }),
        result(`${cacheType}: files`, 'MiB', [loading.bytes / 2 ** 20]),
        result(`${cacheType}: close while it is saved`, 's', [computing.closing]),
      );
    } finally {
      fs.rmSync(home, { recursive: true });
    }
  }
  return rows;
}

/** Measures the first token of a prompt in a new runtime, which is closed afterwards. */
async function firstToken(runtime) {
  const word = (i) => ['river', 'stone', 'cloud', 'green', 'seven', 'paper', 'north', 'quiet'][(i * i) % 8];
  await runtime.createTextCompletion({ prompt: 'warm', max_tokens: 1 }); // loads the model
  const prompt = (await runtime.tokenize(Array.from({ length: TOKENS }, (_, i) => word(i)).join(' '))).slice(
    0,
    TOKENS,
  );
  const start = performance.now();
  const { usage } = await runtime.createTextCompletion({ prompt, max_tokens: 1, temperature: 0 });
  const seconds = (performance.now() - start) / 1000;
  const closeStart = performance.now();
  await runtime.close();
  const closing = (performance.now() - closeStart) / 1000;
  const [listing] = await runtime.diskCaches.list();
  return { seconds, closing, bytes: listing.bytes, cached: usage.prompt_tokens_details.cached_tokens };
}
