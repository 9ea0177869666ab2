// Types of the KV cache -> what each does to the log-probabilities of a text, beside a cache of 32 bits, and its memory.
import fs from 'node:fs';
import { createRuntime } from '../../dist/index.js';
import { result } from '../lib/measure.mjs';

const TEXT = new URL('../../docs/architecture.md', import.meta.url);
const CHARACTERS = 1500;
const TYPES = ['f16', 'q8_0', 'q4_0'];

/** Runs the parts. `model`: a GGUF file; default the embedded model. */
export async function run({ model = 'onpolicy-tiny', threads, log = () => {} } = {}) {
  const text = fs.readFileSync(TEXT, 'utf8').slice(0, CHARACTERS);
  const rows = [];
  const exact = await scores('f32');
  rows.push(result('cache of f32', 'MiB', [exact.mib]));
  for (const type of TYPES) {
    const { logprobs, mib } = await scores(type);
    const changes = logprobs.map((logprob, i) => Math.abs(logprob - exact.logprobs[i]));
    const mean = changes.reduce((sum, change) => sum + change, 0) / changes.length;
    rows.push(result(`cache of ${type}`, 'MiB', [mib]));
    rows.push({
      name: `${type}: mean change of log-probabilities`,
      unit: 'nats',
      median: mean,
      min: mean,
      max: Math.max(...changes),
    });
  }
  return rows;

  async function scores(cacheType) {
    log(`cache: ${cacheType}`);
    const limits = { contextSize: 1024, maxSequences: 1, threads, gpu: false };
    const runtime = await createRuntime({ model: { path: model, cacheType }, ...limits });
    const request = { messages: [{ role: 'user', content: text }], max_tokens: 1, prompt_logprobs: 0 };
    const { prompt_logprobs } = await runtime.createCompletion(request);
    const mib = runtime.loaded()[0].memory.cache / 2 ** 20;
    await runtime.close();
    return { logprobs: prompt_logprobs.slice(1).map((entry) => Object.values(entry)[0].logprob), mib };
  }
}
