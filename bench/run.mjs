// Names of suites -> their figures: a table on standard output, JSON and a chart in bench/results/.
// A suite is bench/suites/<name>.mjs; it exports `run(options)`, which gives rows { name, unit, median, min, max, ratios? }.
import fs from 'node:fs';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { measureAtOnce } from './lib/measure.mjs';
import { formatTable, toJson, writeJson, writeResults } from './lib/report.mjs';

const USAGE = `npm run bench -- [SUITE ...] [--rounds N] [--sequences 1,8] [--only bare,onpolicy] [--threads N] [--model FILE]
  [--requests N] [--lengths 512,2000] [--llama-server PROGRAM] [--json FILE] [--no-save] [--no-wait]`;
const SUITES = [
  'decode',
  'decide',
  'busy',
  'prompt',
  'matmul',
  'attention',
  'engine',
  'sampler',
  'request',
  'protocol',
  'structured',
  'template',
  'train',
  'store',
  'residency',
  'overload',
  'cache',
  'disk-cache',
  'batch',
  'adapters',
  'media',
  'embeddings',
  'onnx',
  'speculation',
  'http',
];
const DEFAULT_SUITES = ['decode', 'engine', 'sampler'];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', default: false },
    json: { type: 'string' },
    rounds: { type: 'string' },
    sequences: { type: 'string' },
    threads: { type: 'string' },
    model: { type: 'string' },
    only: { type: 'string' },
    requests: { type: 'string' },
    lengths: { type: 'string' },
    'llama-server': { type: 'string' },
    'no-save': { type: 'boolean', default: false },
    'no-wait': { type: 'boolean', default: false },
  },
});

if (flags.help) {
  process.stdout.write(`${USAGE}\nsuites: ${SUITES.join(', ')}; without one: ${DEFAULT_SUITES.join(', ')}\n`);
  process.exit(0);
}
// Ends measurements that are running, too.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const suiteFile = (name) => new URL(`./suites/${name}.mjs`, import.meta.url);
const isPresent = (name) => fs.existsSync(suiteFile(name));
const known = SUITES.filter(isPresent);
for (const name of positionals) {
  if (known.includes(name)) continue;
  process.stderr.write(`bench: no suite "${name}"; there are: ${known.join(', ')}\n`);
  process.exit(2);
}
const chosen = positionals.length > 0 ? positionals : DEFAULT_SUITES.filter(isPresent);

/** Options of a suite. Undefined selects the suite's default. */
const options = {
  rounds: flags.rounds === undefined ? undefined : Number(flags.rounds),
  sequences: flags.sequences?.split(',').map(Number),
  threads: flags.threads === undefined ? os.availableParallelism() : Number(flags.threads),
  model: flags.model,
  only: flags.only?.split(','),
  requests: flags.requests === undefined ? undefined : Number(flags.requests),
  lengths: flags.lengths?.split(',').map(Number),
  llamaServer: flags['llama-server'],
  log: (line) => process.stderr.write(`${line}\n`),
};

if (flags['no-wait']) measureAtOnce();
const all = [];
let failed = false;
for (const name of chosen) {
  options.log(`== ${name}`);
  try {
    const { run } = await import(suiteFile(name));
    const results = await run(options);
    all.push(...results);
    process.stdout.write(`\n${name}\n${formatTable(results)}\n`);
    if (!flags['no-save']) process.stdout.write(`${writeResults(name, results).join('\n')}\n`);
  } catch (error) {
    failed = true;
    process.stderr.write(`bench: suite ${name} failed: ${error.stack ?? error}\n`);
  }
}
if (flags.json !== undefined) writeJson(flags.json, toJson(all));
process.exit(failed ? 1 : 0);
