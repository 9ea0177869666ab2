// Settings -> milliseconds of the same requests of text, to a model with its projector loaded and to one without, in turns.
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { pair, threads, rounds, streams = 4, outputTokens = 32 } = settingsOfProcess();
const open = (mmproj) =>
  createRuntime({
    model: { path: pair.model, mmproj, cacheType: 'f16' },
    gpu: false,
    threads,
    contextSize: 256,
    maxSequences: streams,
    prefixCache: false,
  });
const runtimes = { without: await open(null), with: await open(pair.mmproj) };

async function time(runtime) {
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: streams }, (_, index) =>
      runtime.createCompletion({
        messages: [{ role: 'user', content: wordPrompt(16, index) }],
        max_tokens: outputTokens,
        ignore_eos: true,
        seed: index,
      }),
    ),
  );
  return performance.now() - startMs;
}

const times = { without: [], with: [] };
for (const runtime of Object.values(runtimes)) await time(runtime); // warms up
for (let round = 0; round < rounds; round++)
  for (const name of round % 2 === 0 ? ['without', 'with'] : ['with', 'without'])
    times[name].push(await time(runtimes[name]));
for (const runtime of Object.values(runtimes)) await runtime.close();
report({ withMs: times.with, withoutMs: times.without });
