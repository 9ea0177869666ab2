// Makes a fresh clone ready, and does nothing when it is: packages, addon, compiled TypeScript, embedded model.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19))
  fail(`Node 20.19 or newer is needed; this is ${process.version}`);

/** Runs a step, and runs it again only when one of its inputs changed. */
function step(name, inputs, output, work) {
  const hash = createHash('sha256');
  for (const input of inputs) {
    const full = path.join(root, input);
    const files = fs.statSync(full).isDirectory()
      ? fs
          .readdirSync(full, { recursive: true })
          .map((file) => path.join(full, file))
          .filter((file) => fs.statSync(file).isFile())
      : [full];
    for (const file of files.sort()) hash.update(path.relative(root, file)).update(fs.readFileSync(file));
  }
  const digest = hash.digest('hex');
  const stamp = path.join(root, 'node_modules', `.onpolicy-${name}`);
  if (
    fs.existsSync(path.join(root, output)) &&
    fs.existsSync(stamp) &&
    fs.readFileSync(stamp, 'utf8') === digest
  )
    return;
  process.stderr.write(`setup: ${name}\n`);
  work();
  fs.writeFileSync(stamp, digest);
}

function run(...command) {
  // Progress goes to standard error, so that a piped program's own output stays clean.
  execFileSync(command[0], command.slice(1), { cwd: root, stdio: ['ignore', 2, 2] });
}

function fail(message) {
  process.stderr.write(`setup: ${message}\n`);
  process.exit(1);
}

step('packages', ['package-lock.json', '.npmrc'], 'node_modules/typescript', () =>
  run('npm', 'ci', '--ignore-scripts'),
);
run(process.execPath, path.join(root, 'scripts', 'build-addon.mjs'), '--if-missing');
step(
  'validators',
  ['src/protocol/schemas', 'scripts/build-validators.mjs', 'scripts/schema-types.mjs', 'package-lock.json'],
  'src/protocol/generated/validators.ts',
  () => run(process.execPath, path.join(root, 'scripts', 'build-validators.mjs')),
);
step('build', ['src', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'], 'dist/index.js', () => {
  fs.rmSync(path.join(root, 'dist'), { recursive: true, force: true });
  run(
    process.execPath,
    path.join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
    '-p',
    'tsconfig.build.json',
  );
});
if (!fs.existsSync(path.join(root, 'models', 'onpolicy-tiny.gguf')))
  fail('models/onpolicy-tiny.gguf is missing from this checkout: restore it with "git checkout models"');
