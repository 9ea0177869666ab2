// Trains the embedded model from random weights on its synthetic corpus. Replaces the shipped one if no skill of the exam gets worse.
//   --out FILE (default bench/models/onpolicy-tiny-new.gguf), --from FILE (starts from its weights instead of random ones),
//   --steps N, --minutes N (instead of steps), --rate N, --rows N (a step), --seed N, --threads N, --report N (steps between lines),
//   --questions N (a skill), --keep (never replaces the shipped file), --exam (examines --out without training)
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadGguf } from '../../dist/models/formats/gguf.js';
import { openFullTrainer } from '../../dist/rl/public.js';
import { drawRows } from './model/corpus.mjs';
import { examine, isAtLeastAsGood, renderTable } from './model/exam.mjs';
import { drawQuestions } from './model/questions.mjs';
import { createRandom } from './model/random.mjs';
import { setRandomWeights } from './model/start.mjs';
import { trainModel } from './model/train.mjs';

const inRepository = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const SHIPPED = inRepository('models/onpolicy-tiny.gguf');
const ROW_TOKENS = 1024;
const EXAM_SEED = 2_000_000;

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: inRepository('bench/models/onpolicy-tiny-new.gguf') },
    from: { type: 'string' },
    steps: { type: 'string', default: '14000' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '2.5e-3' },
    rows: { type: 'string', default: '1' },
    report: { type: 'string', default: '50' },
    questions: { type: 'string', default: '100' },
    threads: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
    exam: { type: 'boolean', default: false },
  },
});
const print = (line) => process.stdout.write(`${line}\n`);
fs.mkdirSync(path.dirname(values.out), { recursive: true });
if (!values.exam) await train();
const exams = drawQuestions(createRandom(EXAM_SEED), Number(values.questions));
const former = await examine(SHIPPED, exams);
const next = await examine(values.out, exams);
print(`\n${renderTable(former, next)}\n`);
if (!isAtLeastAsGood(former, next))
  print(`${values.out} is not as good in every skill: the shipped file stays`);
else if (values.keep) print(`${values.out} is at least as good in every skill`);
else {
  fs.copyFileSync(values.out, SHIPPED);
  print('models/onpolicy-tiny.gguf is the new model now');
}
process.exit(0); // reading the vocabulary has started threads of its own

/** Writes the trained model to --out, and a first version of it every few minutes. */
async function train() {
  const vocabulary = await loadGguf({ path: SHIPPED, gpu: false, threads: 1 });
  const encode = (text) => vocabulary.tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  const trainer = await openFullTrainer({
    model: values.from ?? SHIPPED, // for its shapes, its vocabulary and its template
    threads: Number(values.threads),
    arithmetic: 'fast',
  });
  const random = createRandom(Number(values.seed));
  if (values.from === undefined) await setRandomWeights(trainer, random);
  const rows = drawRows(random, encode, ROW_TOKENS);
  const options = {
    steps: Number(values.steps),
    minutes: values.minutes ? Number(values.minutes) : undefined,
    rowsPerStep: Number(values.rows),
    highestRate: Number(values.rate),
  };
  let mean = 0;
  await trainModel(trainer, rows, options, async ({ step, loss, tokens, elapsedMs, progress }) => {
    mean = step === 1 ? loss : 0.98 * mean + 0.02 * loss;
    if (step % Number(values.report) === 0)
      print(
        `step ${step}, ${Math.round(progress * 100)} %, loss ${mean.toFixed(3)}, ${Math.round(tokens / (elapsedMs / 1000))} tokens/s`,
      );
    if (step % 250 === 0) await trainer.save(values.out);
  });
  await trainer.save(values.out);
  await trainer.close();
}
