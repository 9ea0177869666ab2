// Follows a release of the engine. docs/architecture.md has the steps by hand.
//   npm run engine                    which releases are newer, and which of their packages are missing
//   npm run engine -- 3.22.1          compares, writes what follows from the release, installs, builds, and tests
//   npm run engine -- 3.22.1 --look   compares, and writes nothing
//   npm run engine -- 3.22.1 --quick  without the tests: up to the demo
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { compareReleases, tableOf } from './compare.mjs';
import { releasesOf, view } from './registry.mjs';
import { readRelease, writeRelease } from './release.mjs';

const root = path.resolve(import.meta.dirname, '../..');
/** Tests that the engine's assumptions are behind. */
const ASSUMPTIONS = {
  unit: ['test/scripts', 'test/engine', 'test/models'],
  native: [
    'test/engine',
    'test/matmul',
    'test/attention',
    'test/models',
    'test/answer',
    'test/rl',
    'test/architectures',
  ],
  slow: ['test/rl/same-bits', 'test/rl/architectures', 'test/rl/gradients', 'test/models/formats'],
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { look: { type: 'boolean' }, quick: { type: 'boolean' } },
});
const [wanted] = positionals;
const present = readRelease();
const minutes = [];
if (wanted === undefined) await report();
else await follow();

async function report() {
  const releases = await releasesOf('node-llama-cpp');
  const newer = releases.slice(releases.indexOf(present.release)).reverse();
  for (const release of newer) {
    const missing = await missingPackages(release);
    const state = missing.length === 0 ? 'is complete' : `lacks ${missing.join(', ')}`;
    const ours = release === present.release ? ', and is what this package names' : '';
    console.log(`node-llama-cpp ${release} ${state}${ours}`);
  }
}

async function missingPackages(release) {
  const packages = Object.entries(await view(`node-llama-cpp@${release}`, 'optionalDependencies'));
  const present = await Promise.all(
    packages.map(async ([name, version]) => (await releasesOf(name)).includes(version)),
  );
  return packages.map(([name]) => name.split('/')[1]).filter((_, i) => !present[i]);
}

async function follow() {
  const { release, rows } = await timed('compare', () => compareReleases(present, wanted));
  if (!values.look) {
    writeRelease(release);
    await install();
    if (!values.quick) await test();
  }
  console.log(`\n${tableOf(rows)}\n`);
  for (const [name, time, isGood] of minutes)
    console.log(`${time.toFixed(1)} minutes: ${name}${isGood ? '' : ': FAILED'}`);
  if (minutes.some(([, , isGood]) => !isGood)) process.exitCode = 1;
}

async function install() {
  await step('packages', 'npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund']);
  await step('build', process.execPath, ['scripts/setup.mjs']);
  await step('decoder', process.execPath, ['scripts/build-decoder.mjs', '--if-missing']);
  await step('demo', process.execPath, ['dist/apps/demo/index.js']);
}

/** Test files are made anew in a folder of their own: the engine says which tensors they have. */
async function test() {
  const TMPDIR = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-engine-tests-'));
  const env = { ...process.env, TMPDIR };
  const vitest = (project, paths) => ['vitest', 'run', '--project', project, ...paths];
  for (const [project, paths] of Object.entries(ASSUMPTIONS))
    await step(`${project} tests of assumptions`, 'npx', vitest(project, paths), env);
  const matrix = vitest('slow', ['test/architectures']);
  await step('architectures', 'npx', matrix, { ...env, ONPOLICY_ARCHITECTURES: 'all' });
  fs.rmSync(TMPDIR, { recursive: true, force: true });
}

function step(name, command, words, env = process.env) {
  const shell = process.platform === 'win32'; // npm is a batch file there
  return timed(
    name,
    () => spawnSync(command, words, { cwd: root, stdio: 'inherit', env, shell }).status === 0,
  );
}

async function timed(name, work) {
  console.log(`=== ${name}`);
  const start = performance.now();
  const result = await work();
  minutes.push([name, (performance.now() - start) / 60_000, result !== false]);
  return result;
}
