// Settings -> tokens per second of four streams with adapters, in company and not, on a model with random adapters of rank 16.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { readHeaders } from '../../dist/models/formats/index.js';
import { writeGgufAdapter } from '../../dist/models/lora/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const { model, threads, rounds } = settingsOfProcess();
const STREAMS = 4;
const TOKENS = 32;
const PROMPT_TOKENS = 32;
const RANK = 16;
const LINEAR = /^blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight$/;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-adapters-'));
const [{ architecture, tensors }] = await readHeaders(model);

/** A file with random factors for all linear layers. */
function writeAdapter(seed) {
  let state = seed;
  const random = (deviation) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return deviation * (state / 2 ** 31 - 1);
  };
  const modules = [...tensors].filter(([name]) => LINEAR.test(name));
  const weights = modules.map(
    ([
      name,
      {
        shape: [width, rows],
      },
    ]) => [
      name.replace(/\.weight$/, ''),
      {
        a: Float32Array.from({ length: RANK * width }, () => random(1 / Math.sqrt(width))),
        b: Float32Array.from({ length: rows * RANK }, () => random(0.05)),
      },
    ],
  );
  const file = path.join(folder, `${seed}.gguf`);
  const adapter = { architecture, alpha: RANK, rank: RANK, weights: Object.fromEntries(weights) };
  fs.writeFileSync(file, Buffer.concat(writeGgufAdapter(adapter)));
  return file;
}

const files = Array.from({ length: STREAMS }, (_, i) => writeAdapter(i + 1));
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize: 256,
  maxSequences: STREAMS,
  prefixCache: false,
});
for (const [i, file] of files.entries()) await runtime.adapters.load({ name: `lora ${i}`, path: file });

/** The tokens of one stream; `file` names an adapter that is not loaded. */
async function answer(index, name, { tokens = TOKENS, file } = {}) {
  const { choices } = await runtime.createCompletion({
    messages: [{ role: 'user', content: wordPrompt(PROMPT_TOKENS, index) }],
    chat_template: '{{ messages[0].content }}',
    temperature: 0,
    ignore_eos: true,
    max_tokens: tokens,
    return_token_ids: true,
    ...(name ? { model: name } : {}),
    ...(file ? { adapters: [{ file }] } : {}),
  });
  return choices[0].token_ids;
}

const indices = files.map((_, i) => i);
const inTurn = async (nameOf) => {
  const answers = [];
  for (const i of indices) answers.push(await answer(i, nameOf(i)));
  return answers;
};
const together = (nameOf) => Promise.all(indices.map((i) => answer(i, nameOf(i))));
const WAYS = {
  'none, in one batch': () => together(() => null),
  'one adapter, in one batch': () => together(() => 'lora 0'),
  'four adapters, in company': () => together((i) => `lora ${i}`),
  'four adapters, one after the other': () => inTurn((i) => `lora ${i}`),
};

try {
  const rates = Object.fromEntries(Object.keys(WAYS).map((name) => [name, []]));
  let different = 0;
  for (let round = -1; round < rounds; round++) {
    const answers = {};
    for (const [name, run] of Object.entries(WAYS)) {
      const startMs = performance.now();
      answers[name] = await run();
      const seconds = (performance.now() - startMs) / 1000;
      if (round >= 0) rates[name].push((STREAMS * TOKENS) / seconds); // the first round warms up
    }
    const alone = answers['four adapters, one after the other'];
    const company = answers['four adapters, in company'];
    different += company.filter((tokens, i) => tokens.join() !== alone[i].join()).length;
  }
  const timed = async (file) => {
    const startMs = performance.now();
    await answer(0, null, { tokens: 1, file });
    return performance.now() - startMs;
  };
  const fresh = writeAdapter(99);
  const plainMs = await timed();
  report({ rates, different, firstMs: (await timed(fresh)) - plainMs });
} finally {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
}
