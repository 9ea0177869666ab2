// Makes a fresh clone ready, and does nothing when it is: packages, addon, compiled TypeScript, embedded model.
// Nothing is downloaded but packages. Output goes to standard error, so that a piped program's own output stays clean.
// --types: with the types of the package, which nothing that runs needs.
// --answers: only what first answers need: the packages of this one and those that build it, and of the addons what answers.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const withTypes = process.argv.includes('--types');
const isForAnswers = process.argv.includes('--answers');
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
/** Packages for development that build what runs. Tests and checks need the others, too, which are most of them. */
const BUILDING = ['highlight.js', 'lowlight', 'marked', 'node-gyp', 'node-llama-cpp', 'rolldown'];
/** Options of npm. */
const QUIET = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];

requireNode();
await installPackages().catch(fail);
// Both run to their end, so that a failure of one leaves no compiler behind.
for (const { reason } of await Promise.allSettled([buildAddon(), compileTypeScript()]))
  if (reason) fail(reason);
if (!fs.existsSync(path.join(root, 'models', 'onpolicy-tiny.gguf')))
  fail(
    new Error(
      'models/onpolicy-tiny.gguf is missing from this checkout: restore it with "git checkout models"',
    ),
  );

function buildAddon() {
  return runScript('addon', 'build-addon.mjs', '--if-missing', isForAnswers ? '--answers' : '--testing');
}

async function compileTypeScript() {
  await whenChanged(
    'src/protocol/generated/.inputs',
    [
      'src/protocol/schemas',
      'scripts/build-protocol.mjs',
      'scripts/schema-types.mjs',
      'scripts/schema-fills.mjs',
      'package-lock.json',
    ],
    () => runScript('schemas and types of requests', 'build-protocol.mjs'),
  );
  await whenChanged(
    'dist/.inputs',
    [
      'src',
      'scripts/compile.mjs',
      'tsconfig.json',
      'tsconfig.build.json',
      'package.json',
      'package-lock.json',
    ],
    () => runScript('typescript', 'compile.mjs', ...(withTypes ? ['--types'] : [])),
    withTypes,
  );
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    fail(new Error(`Node 20.19 or newer is needed; this is ${process.version}`));
}

/** Packages that are here stay where they can: their headers keep their times, so that the compiler does not run again. */
async function installPackages() {
  if (hasPackages(isForAnswers)) return;
  if (isForAnswers && !fs.existsSync(path.join(root, 'node_modules'))) return await installForAnswers();
  if (hasPackages(true))
    await run('more packages', ...npm(), 'install', '--no-save', ...QUIET).catch(() => {});
  if (!hasPackages(false)) await run('packages', ...npm(), 'ci', ...QUIET);
}

/** Installs a tenth of the packages, as package-lock.json has them, beside the place to which they then move. */
async function installForAnswers() {
  const folder = path.join(root, '.packages');
  const { dependencies, optionalDependencies, devDependencies } = readJson('package.json');
  const engines = Object.entries(optionalDependencies).filter(([name]) => name.includes(process.arch));
  const lock = readJson('package-lock.json');
  const engine = lock.packages['node_modules/node-llama-cpp'];
  engine.dependencies = engine.optionalDependencies = {}; // only the engine's sources are taken from it
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder);
  const write = (name, content) => fs.writeFileSync(path.join(folder, name), JSON.stringify(content));
  write('package.json', {
    dependencies,
    optionalDependencies: Object.fromEntries(engines),
    devDependencies: Object.fromEntries(BUILDING.map((name) => [name, devDependencies[name]])),
  });
  write('package-lock.json', lock);
  await run('packages', ...npm(), 'ci', '--prefix', folder, ...QUIET);
  fs.renameSync(path.join(folder, 'node_modules'), path.join(root, 'node_modules'));
  fs.rmSync(folder, { recursive: true });
}

/** Returns true if node_modules contains the packages of package-lock.json. Packages for other platforms may be absent. */
function hasPackages(isOnlyForAnswers) {
  const wanted = readPackages('package-lock.json');
  const installed = readPackages('node_modules/.package-lock.json');
  if (!wanted || !installed) return false;
  const few = [...Object.keys(readJson('package.json').dependencies), ...BUILDING].map(
    (name) => `node_modules/${name}`,
  );
  return Object.entries(wanted).every(([folder, { version, optional }]) => {
    if (folder === '' || (isOnlyForAnswers && !few.includes(folder))) return true; // '': this package itself
    const found = installed[folder];
    return found ? found.version === version && fs.existsSync(path.join(root, folder)) : optional === true;
  });
}

function readPackages(file) {
  try {
    return readJson(file).packages;
  } catch {
    return null;
  }
}

function readJson(file) {
  return JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
}

/** The npm that runs this script, or the one on the PATH. */
function npm() {
  const running = process.env.npm_execpath;
  return running && path.basename(running) === 'npm-cli.js' ? [process.execPath, running] : ['npm'];
}

/** Does the work unless `stamp`, written after the last time, says that the inputs are still the same, and all of it was done. */
async function whenChanged(stamp, inputs, work, isWhole = true) {
  const digest = hashOf(inputs);
  const file = path.join(root, stamp);
  const [before, extent] = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split(' ') : [];
  if (before === digest && (extent === 'whole' || !isWhole)) return;
  await work();
  fs.writeFileSync(file, `${digest} ${isWhole ? 'whole' : 'part'}`);
}

function hashOf(inputs) {
  const hash = createHash('sha256');
  for (const input of inputs) {
    const full = path.join(root, input);
    const files = fs.statSync(full).isDirectory()
      ? fs
          .readdirSync(full, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => path.join(entry.parentPath, entry.name))
          .sort()
      : [full];
    for (const file of files)
      hash.update(path.relative(root, file)).update('\0').update(fs.readFileSync(file));
  }
  return hash.digest('hex');
}

function runScript(name, script, ...options) {
  return run(name, process.execPath, path.join(root, 'scripts', script), ...options);
}

/** Resolves when the command ends well. */
function run(name, command, ...options) {
  if (name !== 'addon') process.stderr.write(`setup: ${name}\n`); // the addon's script speaks when it has to build
  return new Promise((resolve, reject) => {
    spawn(command, options, { cwd: root, stdio: ['ignore', 2, 2] })
      .on('error', () => reject(new Error(`${name}: ${command} was not found`)))
      .on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`${name} failed; the lines above say why`)),
      );
  });
}

function fail(error) {
  process.stderr.write(`setup: ${error.message}\n`);
  process.exit(1);
}
