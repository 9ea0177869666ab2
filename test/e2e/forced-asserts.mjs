// A model, one for embeddings, and the compiled forced-asserts.c -> each function of the engine fails an assert while each kind of work calls it: the outcomes,
// and whether the same work then succeeds, as a file of JSON: { work: { function: { outcome: times } } }.
import fs from 'node:fs';
import path from 'node:path';
import { loadAddon, openLibraries } from '../../dist/engine/native/index.js';
import { createRuntime } from '../../dist/index.js';

const [model, vectors, hook, list, rounds, to] = process.argv.slice(2);
const names = JSON.parse(list);
const addon = loadAddon();
const hooked = { exports: {} };
process.dlopen(hooked, path.resolve(hook));
/** The number of the function that is to fail, and how often each was called. */
const control = new Int32Array(hooked.exports);
const size = 37;
const ids = Int32Array.from({ length: size }, (_, i) => (i * 37) % 250);
await openLibraries(false);
const options = { gpu: false, threads: 3, kvTokens: 2048 };
const runtime = await createRuntime({ model, ...options });
const embedder = await createRuntime({ model: vectors, ...options });
const settings = { ...{ model, device: '', threads: 3, rank: 4, alpha: 8 }, modules: ['attn_q', 'ffn_down'] };
const openTrainer = () => addon.openTrainer({ ...settings, memoryBudget: 0, contextSize: 0, isWide: false });
const row = {
  ...{ tokens: ids, positions: Int32Array.from(ids, (_, i) => i) },
  ...{ groupIds: new Int32Array(size), parentIds: new Int32Array(size) },
  ...{ logitRows: Int32Array.from({ length: size - 1 }, (_, i) => i), targetTokens: ids.slice(1) },
};

const works = {
  async answering() {
    const { choices } = await runtime.createTextCompletion({
      prompt: [Array.from(ids), Array.from(ids.slice(5))],
      max_tokens: 8,
      ignore_eos: true,
      temperature: 0,
      logprobs: 1,
    });
    return choices.map(({ text, logprobs }) => [text, logprobs.token_logprobs]);
  },
  async embedding() {
    const { data } = await embedder.createEmbeddings({ input: [Array.from(ids), Array.from(ids.slice(9))] });
    return data.map(({ embedding }) => embedding[0]);
  },
  async loading() {
    const cancelled = new Int32Array(1);
    const loaded = await addon.loadModel({ path: model, useGpu: false, packs: true, cancelled });
    const tokens = loaded.tokenize('!!', false, false);
    loaded.close();
    return [loaded.vocabSize, ...tokens];
  },
  async training() {
    const trainer = await openTrainer();
    try {
      const { logprobs } = await trainer.forward(row, true, false);
      await trainer.backward(new Float32Array(logprobs.length).fill(0.1));
      return [logprobs[0], trainer.read('gradient')['blk.0.attn_q'].b[0]];
    } finally {
      trainer.close();
    }
  },
  async merging() {
    const merged = `${model}.merged`;
    const entries = { textKeys: [], texts: [], numberKeys: [], numbers: new Float32Array() };
    const scales = new Float32Array();
    await addon.mergeModel({ model, files: [], scales, types: 'wide', ...entries, threads: 3, to: merged });
    return [fs.statSync(merged).size];
  },
};

const report = {};
for (const [work, run] of Object.entries(works)) {
  report[work] = {};
  await run();
  const before = control.slice();
  const expected = JSON.stringify(await run());
  const after = control.slice();
  for (const [i, name] of names.entries()) {
    if (after[i + 1] === before[i + 1]) continue; // it is not called
    const outcomes = {};
    report[work][name] = outcomes;
    for (let round = 0; round < Number(rounds); ++round) {
      control[0] = i + 1;
      const outcome = await run().then(
        (result) => (JSON.stringify(result) === expected ? 'done' : 'another answer'),
        ({ code, message }) => code ?? message,
      );
      const isLeft = control[0] !== 0;
      control[0] = 0;
      const next = await run().then(JSON.stringify, String);
      const result = `${isLeft ? 'not called' : outcome}${next === expected ? '' : `, then ${next.slice(0, 200)}`}`;
      outcomes[result] = (outcomes[result] ?? 0) + 1;
    }
    process.stderr.write(`${work}: ${name}: ${JSON.stringify(outcomes)}\n`);
  }
}
fs.writeFileSync(to, JSON.stringify(report));
process.exit();
