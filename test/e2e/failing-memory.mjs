// A model and a file for failing-memory.cc -> each piece of work with each of its allocations failing in turn: what came of it, as JSON.
import fs from 'node:fs';
import { grammarAddon, loadAddon, openLibraries } from '../../dist/engine/native/index.js';

const [model, control, most, inARow] = process.argv.slice(2);
/** Allocations that fail behind the first one. */
const MORE = Number(inARow) - 1;
const file = fs.openSync(control, 'r+');
const failAt = (count) => fs.writeSync(file, Int32Array.of(count, 0, count > 0 ? MORE : 0), 0, 12, 0);
const hasFailed = () => {
  const numbers = new Int32Array(2);
  fs.readSync(file, numbers, 0, 8, 0);
  return numbers[1] > 0;
};

await openLibraries(false);
const addon = loadAddon();
const grammar = grammarAddon();

const VOCABULARY = 257;
const bytes = Uint8Array.from({ length: VOCABULARY - 1 }, (_, i) => i);
const offsets = Uint32Array.from({ length: VOCABULARY + 1 }, (_, i) => Math.min(i, VOCABULARY - 1));
const ends = Int32Array.of(VOCABULARY - 1);
const spec = {
  kind: 0,
  text: '{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}}}',
  choices: [],
  schemaUris: [],
  schemas: [],
};
const makeVocabulary = () => grammar.createVocabulary(bytes, offsets, ends, ends);
const vocabulary = makeVocabulary();
const { constraint } = await grammar.compileConstraint(spec, vocabulary);

const rows = new addon.RowSampler(VOCABULARY, 3);
const logits = Float32Array.from({ length: 8 * VOCABULARY }, (_, i) => Math.sin(i * i));
const plan = new addon.SamplerPlan({
  vocabSize: VOCABULARY,
  temperature: 1,
  top_p: 0.9,
  repetition_penalty: 1.1,
  topLogprobs: 3,
});
const all = Int32Array.from({ length: 8 }, (_, i) => i);

const size = 37;
const ids = Int32Array.from({ length: size }, (_, i) => (i * 37) % 300);
const row = {
  ...{
    tokens: ids,
    positions: Int32Array.from(ids, (_, i) => i),
    groupIds: new Int32Array(size),
    parentIds: new Int32Array(size),
  },
  ...{ logitRows: Int32Array.from({ length: size - 1 }, (_, i) => i), targetTokens: ids.slice(1) },
};
const modules = ['attn_q', 'ffn_down'];
const openTrainer = () =>
  addon.openTrainer({
    model,
    device: '',
    threads: 3,
    rank: 4,
    alpha: 8,
    modules,
    memoryBudget: 0,
    contextSize: 0,
    isWide: false,
  });
const trainer = await openTrainer();
const loaded = await addon.loadModel({
  path: model,
  useGpu: false,
  packs: true,
  cancelled: new Int32Array(1),
});

const works = {
  async rows() {
    const samplers = Array.from(all, (i) => new addon.Sampler(plan, BigInt(i)));
    const matchers = Array.from(all, (i) => (i % 2 ? null : grammar.createMatcher(constraint)));
    const { samples } = await rows.sample({
      logits,
      sampleRows: all,
      samplers,
      matchers,
      scoreRows: Int32Array.of(0, 5, 3, 1, 6, 3),
    });
    if (samples.tokens.includes(-1)) throw new Error('a mask without memory allows nothing');
    return Array.from(samples.tokens);
  },
  async grammar() {
    const compiled = await grammar.compileConstraint(spec, makeVocabulary());
    await grammar.warmUp(compiled.constraint);
    const mask = new Int32Array(Math.ceil(VOCABULARY / 32));
    grammar.fillMask(grammar.createMatcher(compiled.constraint), mask);
    return [mask.some((word) => word !== 0)];
  },
  tokens: async () => [
    ...loaded.tokenize('!!""', false, false),
    ...(await loaded.tokenizeLong('!!""', false, false)),
  ],
  drafts: async () =>
    [addon.createDrafter({ minMatch: 2, usesText: true }, ids)].map(
      (drafter) => addon.draft(drafter, ids, 4).length,
    ),
  async training() {
    trainer.zeroGradients();
    const { logprobs } = await trainer.forward(row, true, false);
    await trainer.backward(new Float32Array(logprobs.length).fill(0.1));
    return [logprobs[0], trainer.read('gradient')['blk.0.attn_q'].b[0]];
  },
  async opening() {
    const opened = await openTrainer();
    opened.close();
    return [opened.info.layerCount];
  },
  async loading() {
    const again = await addon.loadModel({
      path: model,
      useGpu: false,
      packs: true,
      cancelled: new Int32Array(1),
    });
    return [again.vocabSize];
  },
  async merging() {
    const to = `${control}.gguf`;
    const entries = { textKeys: [], texts: [], numberKeys: [], numbers: new Float32Array() };
    const scales = new Float32Array();
    await addon.mergeModel({ model, files: [], scales, types: 'wide', ...entries, threads: 3, to });
    return [fs.statSync(to).size];
  },
};

/** Work with a shared constraint. If several allocations in a row fail there, it may go on without masks. */
const WITH_CONSTRAINT = new Set(['rows', 'grammar']);

const report = {};
for (const [name, work] of Object.entries(works)) {
  if (MORE > 0 && WITH_CONSTRAINT.has(name)) continue;
  const outcomes = {};
  let isThrough = false;
  for (let count = 1, step = 1; count <= most && !isThrough; count += step) {
    if (count > 60) step = Math.ceil(count / 12); // the first ones are all tried, before any has gone well
    failAt(count);
    const outcome = await work().then(JSON.stringify, (error) => error.code ?? error.message);
    isThrough = !hasFailed();
    failAt(0);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  report[name] = { isThrough, answer: JSON.stringify(await work()), outcomes };
}
process.stdout.write(JSON.stringify(report));
process.exit();
