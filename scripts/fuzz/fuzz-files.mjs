// Damages model files and uses them: node scripts/fuzz/fuzz-files.mjs [--kind text] [--count N] [--seed N] [--model NAME] [--models FOLDER]
//   [--processes N] [--one N] [--verbose]
// A mutant's number makes it again. Reports, and exits 1 for: a process that dies, no answer for 10 s, an error that is no
// OnpolicyError, an undamaged file that is refused. One child takes mutants until it dies of one.
import { parseArgs } from 'node:util';
import { fuzz } from './files/fuzz.mjs';

const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'text' },
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    model: { type: 'string' },
    models: { type: 'string' },
    processes: { type: 'string', default: '1' },
    one: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const totals = await fuzz({
  kind: values.kind,
  first: Number(values.one ?? values.seed),
  count: values.one ? 1 : Number(values.count),
  model: values.model,
  models: values.models,
  processes: Number(values.processes),
  say: console.log,
  isVerbose: values.verbose,
});
console.log(
  `${totals.mutants} mutants in ${totals.seconds.toFixed(0)} s (${(totals.mutants / totals.seconds).toFixed(1)} a second): ` +
    `${totals.deaths} deaths, ${totals.hangs} hangs, ${totals.foreign} errors that are no OnpolicyError, ` +
    `${totals.refused} undamaged files refused; ${totals.accepted} mutants answered`,
);
console.log(JSON.stringify(totals.codes));
if (totals.deaths + totals.hangs + totals.foreign + totals.refused > 0) process.exitCode = 1;
