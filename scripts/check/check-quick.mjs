// The JSON report of `npm test` -> its slowest files, each of which should take 5 seconds at most: what takes longer is a `*.slow.test.ts`.
// Fails above 15 seconds: a busy machine takes up to three times as long.
import fs from 'node:fs';
import path from 'node:path';

const GOAL_S = 5;
const LIMIT_S = 3 * GOAL_S;
const SHOWN = 10;

const [report] = process.argv.slice(2);
const { testResults } = JSON.parse(fs.readFileSync(report, 'utf8'));
const files = testResults
  .map(({ name, startTime, endTime }) => ({
    name: path.relative(process.cwd(), name),
    seconds: (endTime - startTime) / 1000,
  }))
  .sort((a, b) => b.seconds - a.seconds);

for (const { name, seconds } of files.filter(({ seconds }, i) => i < SHOWN || seconds > GOAL_S))
  console.log(`${seconds.toFixed(1)} s ${name}${seconds > GOAL_S ? `: more than ${GOAL_S} s` : ''}`);
const slow = files.filter(({ seconds }) => seconds > LIMIT_S);
if (files.length === 0 || slow.length > 0) {
  console.log(
    files.length === 0
      ? `${report} has no tests`
      : `${slow.length} quick test files take more than ${LIMIT_S} s: make each a *.slow.test.ts, or let it do less`,
  );
  process.exitCode = 1;
}
