// Trains the model that sees, on pictures and questions that a program draws, and examines it on held-out ones. Replaces the shipped pair
// if no skill of the exam gets worse. Needs Python with PyTorch; nothing else of the library does.
//   --minutes N, --rate N, --batch N, --seed N, --threads N, --from FILE (of weights, instead of random ones), --python PROGRAM,
//   --weights FILE, --pictures N (of the exam), --keep (never replaces the shipped files), --exam (examines them without training),
//   --examples (draws the pictures of models/seeing/pictures again)
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadGguf } from '../../dist/models/formats/gguf.js';
import { createRandom } from './model/random.mjs';
import { drawExam, examine, renderTable } from './seeing/exam.mjs';
import { EYES, TEXT, writePair } from './seeing/files.mjs';
import { drawRows, ROW_TOKENS } from './seeing/rows.mjs';
import { COLORS, PATCH, PLACES, SHAPES, SIDE } from './seeing/scenes.mjs';

const inRepository = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const VOCABULARY = inRepository('models/onpolicy-tiny.gguf');
const SHIPPED = inRepository('models/seeing');
const NAMES = { model: 'onpolicy-seeing.gguf', mmproj: 'mmproj-onpolicy-seeing.gguf' };
const EXAM_SEED = 3_000_000;
const EXAMPLES_SEED = 4_000_000;
const EXAMPLES = ['one', 'two', 'three']; // by how many shapes they have

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '2e-3' },
    batch: { type: 'string', default: '32' },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string', default: '1' },
    report: { type: 'string', default: '50' },
    from: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    weights: { type: 'string', default: inRepository('bench/models/onpolicy-seeing.weights') },
    pictures: { type: 'string', default: '200' },
    keep: { type: 'boolean', default: false },
    exam: { type: 'boolean', default: false },
    examples: { type: 'boolean', default: false },
  },
});
const print = (line) => process.stdout.write(`${line}\n`);
const made = inRepository('bench/models/seeing');
const filesIn = (folder) =>
  Object.fromEntries(Object.entries(NAMES).map(([kind, name]) => [kind, path.join(folder, name)]));
if (!values.exam && !values.examples) {
  fs.mkdirSync(made, { recursive: true });
  await train();
  writePair(values.weights, { ...filesIn(made), vocabulary: VOCABULARY, name: 'onpolicy-seeing' });
}
if (values.examples) {
  await drawExamples();
  process.exit(0);
}
const exam = drawExam(createRandom(EXAM_SEED), Number(values.pictures));
const shipped = filesIn(SHIPPED);
const former = fs.existsSync(shipped.model) ? renderTable(await examine(shipped.model, exam)) : null;
if (former) print(`the shipped model:\n${former.table}`);
if (!values.exam) {
  const wrong = [];
  const next = renderTable(await examine(filesIn(made).model, exam, (one) => wrong.push(one)));
  print(`\nthe new model:\n${next.table}\n`);
  for (const { question, answer, got } of wrong.slice(0, 20))
    print(`${question} ${answer}; answered: ${got}`);
  if (values.keep || (former && next.share <= former.share)) print('the shipped files stay');
  else {
    fs.mkdirSync(SHIPPED, { recursive: true });
    for (const kind of Object.keys(NAMES)) fs.copyFileSync(filesIn(made)[kind], shipped[kind]);
    print('models/seeing has the new model now');
  }
}
process.exit(0); // reading the vocabulary has started threads of its own

/** Draws one held-out picture with each number of shapes, and prints the shipped model's answers as a table. */
async function drawExamples() {
  const hasCount = ({ objects }, index) => objects.length === index + 1;
  const exam = drawExam(createRandom(EXAMPLES_SEED), EXAMPLES.length, hasCount);
  fs.mkdirSync(path.join(SHIPPED, 'pictures'), { recursive: true });
  print('| picture | question | right answer | answered |\n|---|---|---|---|');
  for (const [i, { png, questions }] of exam.entries()) {
    const name = `pictures/${EXAMPLES[i]}.png`;
    fs.writeFileSync(path.join(SHIPPED, name), png);
    const wrong = [];
    await examine(filesIn(SHIPPED).model, [{ png, questions }], (one) => wrong.push(one));
    for (const asked of questions) {
      const got = wrong.find(({ skill }) => skill === asked.skill)?.got ?? 'the same';
      print(`| ${name} | ${asked.question} | ${asked.answer} | ${got} |`);
    }
  }
}

/** Draws rows for the Python program until it ends. It writes the weights. */
async function train() {
  const vocabulary = await loadGguf({ path: VOCABULARY, gpu: false, threads: 1 });
  const known = new Map(); // the same texts come again and again
  const encode = async (text) => {
    if (!known.has(text))
      known.set(
        text,
        Array.from(await vocabulary.tokenizer.encode(text, { addSpecial: false, parseSpecial: true })),
      );
    return known.get(text);
  };
  const { minutes, rate, batch, seed, threads, report } = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number(value)]),
  );
  const settings = {
    ...{ minutes, rate, batch, seed, threads, report, from: values.from ?? null, out: values.weights },
    ...{ side: SIDE, patch: PATCH, rowTokens: ROW_TOKENS, vocabulary: vocabulary.tokenizer.vocabSize },
    ...{
      eyes: EYES,
      text: TEXT,
      labels: [SHAPES, Object.keys(COLORS), PLACES].map(({ length }) => length + 1),
    },
  };
  const script = inRepository('scripts/make/seeing/train.py');
  const trainer = spawn(values.python, [script, JSON.stringify(settings)], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  trainer.stdin.on('error', () => {}); // it ends when its time is over
  const ended = once(trainer, 'exit');
  let isRunning = true;
  ended.then(() => {
    isRunning = false;
  });
  for await (const row of drawRows(createRandom(Number(values.seed)), encode)) {
    if (!isRunning) break;
    if (trainer.stdin.write(row)) continue;
    await Promise.race([new Promise((resolve) => trainer.stdin.once('drain', resolve)), ended]);
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`${values.python} ${script} ended with ${code}`);
}
