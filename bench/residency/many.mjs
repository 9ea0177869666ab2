// Many model files and a budget for a few of them: requests for them in random order -> right answers, loads, memory.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { models = 20, held = 3, requests = 2000, atOnce = 8 } = settingsOfProcess();
const QUESTION = { messages: [{ role: 'user', content: 'What is the capital of Peru?' }], temperature: 0 };
const RIGHT = 'The capital of Peru is Lima.';
const LIMITS = { threads: 1, contextSize: 1024, maxSequences: 64, gpu: false };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-many-'));
const embedded = new URL('../../models/onpolicy-tiny.gguf', import.meta.url);
const files = Array.from({ length: models }, (_, i) => {
  const file = path.join(folder, `model-${i}.gguf`);
  fs.copyFileSync(embedded, file);
  return [`model-${i}`, file];
});
const named = Object.fromEntries(files);
try {
  // Memory of the process without a model, after its heap has grown by the same number of concurrent requests, and memory of one model.
  const one = await createRuntime({ ...LIMITS, models: named });
  let total = 0;
  for (const [name] of files.slice(0, 10)) {
    const asked = Array.from({ length: 10 * atOnce }, () =>
      one.createCompletion({ ...QUESTION, model: name }),
    );
    await Promise.all(asked);
    total = one.loaded()[0].memory.total;
    await one.unload(name);
  }
  const emptyBytes = process.memoryUsage.rss();
  await one.close();

  const loads = new Map();
  const budget = Math.ceil(held * total);
  const runtime = await createRuntime({
    ...LIMITS,
    models: named,
    memory: { budget },
    onProgress: (name, fraction) => {
      if (fraction === 1) loads.set(name, (loads.get(name) ?? 0) + 1);
    },
  });
  const state = { right: 0, absent: 0, doubled: 0, left: requests, most: 0 };
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  const startMs = performance.now();
  const work = async () => {
    while (state.left-- > 0) {
      const model = `model-${Math.floor(random() * models)}`;
      const present = runtime.loaded();
      if (!present.some(({ name, state }) => name === named[model] && state !== 'leaving')) state.absent += 1;
      const names = present.filter(({ state }) => state !== 'waiting').map(({ name }) => name);
      if (new Set(names).size < names.length) state.doubled += 1;
      const answer = await runtime.createCompletion({ ...QUESTION, model });
      if (answer.choices[0].message.content === RIGHT && answer.model === model) state.right += 1;
      state.most = Math.max(state.most, process.memoryUsage.rss() - emptyBytes);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const seconds = (performance.now() - startMs) / 1000;
  const loaded = [...loads.values()].reduce((sum, count) => sum + count, 0);
  await runtime.close();
  const { right, absent, doubled, most } = state;
  report({ requests, right, loads: loaded, absent, doubled, budget, most, share: most / budget, seconds });
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
