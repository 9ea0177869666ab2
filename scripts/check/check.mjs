// The sources -> a report of concurrent checks: format and lint, types of the library, of its two pages and of the examples, use from a
// user's project, and unused code. Prints the output of each command, and fails if one of them does.
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const COMMANDS = [
  'tsc',
  'node scripts/check/check-types.mjs',
  'biome check .',
  'knip',
  'tsc -p examples',
  'tsc -p src/rl/report/page',
  'tsc -p src/serve/page',
]; // the longest first

const PATH = [path.join(root, 'node_modules', '.bin'), process.env.PATH].join(path.delimiter);
const left = [...COMMANDS];
async function work() {
  for (let command = left.shift(); command; command = left.shift()) {
    const chunks = [];
    const child = spawn(command, { cwd: root, shell: true, env: { ...process.env, PATH } });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk));
    const code = await new Promise((resolve) => child.on('exit', resolve).on('error', () => resolve(-1)));
    console.log(`${command}: ${code === 0 ? 'ok' : 'failed'}\n${Buffer.concat(chunks)}`.trimEnd());
    if (code !== 0) process.exitCode = 1;
  }
}
await Promise.all(Array.from({ length: Math.min(os.availableParallelism(), COMMANDS.length) }, work));
