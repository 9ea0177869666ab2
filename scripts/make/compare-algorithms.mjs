// Runs of algorithms and of ages of trajectories on one task -> bench/results/algorithms.json, the curves and the tables of
// docs/agents.md. --only grpo,stale-4-none: these runs, which replace the earlier ones; "all" takes half an hour of one core; without
// it curves and tables are made of what there is. --seeds 1,2,3
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeMachine, writeJson } from '../../bench/lib/report.mjs';
import { meanAndRange, writeCurve } from '../../examples/lib/curve.mjs';
import { AGES, ALGORITHMS, CORRECTIONS, RUNS, staleName } from './algorithms/table.mjs';
import { learn } from './algorithms/task.mjs';

const { values } = parseArgs({
  options: { only: { type: 'string' }, seeds: { type: 'string', default: '1,2,3' } },
});
/** A step at which algorithms still differ. */
const EARLY = 8;
const inRepository = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const results = inRepository('bench/results/algorithms.json');
const known = () => (fs.existsSync(results) ? JSON.parse(fs.readFileSync(results, 'utf8')).runs : {});
const names = values.only === 'all' ? Object.keys(RUNS) : (values.only?.split(',') ?? []);
for (const name of names) {
  const bySeed = {};
  for (const seed of values.seeds.split(',')) {
    bySeed[seed] = await learn({ ...RUNS[name], seed: Number(seed) });
    const shares = bySeed[seed].points.map(({ value }) => value.toFixed(2));
    process.stdout.write(`${name}, seed ${seed}: ${shares.join(' ')}\n`);
  }
  writeJson(results, { machine: describeMachine(), runs: { ...known(), [name]: bySeed } });
}
const runs = known();

const page = inRepository('docs/agents.md');
let text = fs.readFileSync(page, 'utf8');
text = withTable(text, '| name | differs', Object.keys(ALGORITHMS).filter(isRun).map(algorithmRow));
text = withTable(text, '| steps old', AGES.filter((age) => isRun(staleName(age, 'none'))).map(ageRow));
fs.writeFileSync(page, text);

function isRun(name) {
  return name in runs;
}

function pointsOf(name) {
  return meanAndRange(Object.values(runs[name]).map(({ points }) => points));
}

/** The mean of the seeds and their range. */
function cell({ value, low, high }) {
  return `${value.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}

function algorithmRow(name) {
  const { differs, take } = ALGORITHMS[name];
  const points = pointsOf(name);
  const file = `curves/algorithm-${name.replaceAll('_', '-')}.svg`;
  writeCurve(inRepository(`docs/${file}`), name, points);
  const [first, early, last] = [points[0], points.find(({ step }) => step === EARLY), points.at(-1)];
  const title = `${first.value.toFixed(2)} at step ${first.step}, ${last.value.toFixed(2)} at step ${last.step}`;
  const code = name === 'defaults' ? name : `\`${name}\``;
  return `| ${code} | ${differs} | ${take} | ${cell(early)} | ${cell(last)} | ![${title}](${file}) |`;
}

/** Right stories in the second half of the runs. */
function ageRow(age) {
  const cells = Object.keys(CORRECTIONS).map((correction) => {
    const shares = Object.values(runs[staleName(age, correction)]).map(({ points }) => {
      const late = points.slice(points.length >> 1);
      return late.reduce((sum, { value }) => sum + value, 0) / late.length;
    });
    return cell(meanAndRange(shares.map((value) => [{ step: 0, value }]))[0]);
  });
  return `| ${age} | ${cells.join(' | ')} |`;
}

/** The page with other rows in the table that begins so. */
function withTable(page, head, rows) {
  const lines = page.split('\n');
  const first = lines.findIndex((line) => line.startsWith(head)) + 2;
  const count = lines.slice(first).findIndex((line) => !line.startsWith('|'));
  return lines.toSpliced(first, count, ...rows).join('\n');
}
