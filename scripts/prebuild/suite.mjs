// A platform and its Node -> the exit code of the unit and native tests run there, in a copy of this checkout with that platform's packages.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const BUILT = ['dist', 'src/protocol/generated'];
/** Ten times those of vitest.config.ts: an emulator is that much slower. */
const LIMITS = ['--testTimeout=600000', '--hookTimeout=600000'];
/** The folder of a checkout that has its compiled files. */
const ADDONS = {
  'onpolicy.node': 'native',
  'grammar.node': 'native',
  'testing.node': 'native',
  'decoder.node': 'native/media/decoder',
};

/** Vitest's words for the tests that run on every release of Node and every platform. */
export const PORTABLE = ['unit', 'native', 'mocked', 'slow'].map((name) => `--project=${name}`);

/** `command` starts the platform's Node, `words` go to vitest. */
export function runSuite(name, { system, processor }, command, work, words) {
  const checkout = path.join(work, 'suite', 'onpolicy');
  copyCheckout(checkout, name);
  addPackages(checkout, system, processor);
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...PORTABLE, ...LIMITS, ...words];
  const run = system === 'win32' ? inside : outside;
  return run(command, checkout, vitest);
}

/** Tracked files, what set-up makes of them, and the platform's addons instead of this machine's. */
function copyCheckout(checkout, name) {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of files.trim().split('\n'))
    if (fs.existsSync(path.join(root, file))) fs.cpSync(path.join(root, file), path.join(checkout, file));
  for (const folder of BUILT)
    fs.cpSync(path.join(root, folder), path.join(checkout, folder), { recursive: true });
  for (const [addon, folder] of Object.entries(ADDONS)) {
    const prebuilt = path.join(root, 'prebuilds', name, addon);
    if (fs.existsSync(prebuilt)) fs.cpSync(prebuilt, path.join(checkout, folder, 'build', 'Release', addon));
  }
  const modules = [path.join(root, 'node_modules'), path.join(checkout, 'node_modules')];
  // Hard links, or copies where the scratch folder is on another disk.
  if (spawnSync('cp', ['-al', ...modules], { stdio: 'ignore' }).status !== 0)
    execFileSync('cp', ['-a', ...modules]);
  const shared = path.join(root, '..', 'shared');
  if (fs.existsSync(shared)) fs.symlinkSync(fs.realpathSync(shared), path.join(checkout, '..', 'shared'));
}

/** Packages of the lock file that are for this platform alone. */
function addPackages(checkout, system, processor) {
  const { packages } = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const wanted = Object.entries(packages)
    .filter(
      ([place, entry]) =>
        entry.os?.includes(system) &&
        entry.cpu?.includes(processor) &&
        !entry.libc?.includes('musl') &&
        !fs.existsSync(path.join(checkout, place)),
    )
    .map(([place, { version }]) => ({
      name: place.slice(place.lastIndexOf('node_modules/') + 13),
      place,
      version,
    }));
  const extra = path.join(checkout, '..', 'extra');
  fs.mkdirSync(extra);
  fs.writeFileSync(path.join(extra, 'package.json'), '{ "private": true }\n');
  const names = wanted.map(({ name, version }) => `${name}@${version}`);
  execFileSync(
    'npm',
    [
      'install',
      ...names,
      `--os=${system}`,
      `--cpu=${processor}`,
      '--ignore-scripts',
      '--prefer-offline',
      '--force',
    ],
    { cwd: extra, stdio: 'pipe' },
  );
  for (const { name, place } of wanted) {
    fs.mkdirSync(path.dirname(path.join(checkout, place)), { recursive: true });
    fs.renameSync(path.join(extra, 'node_modules', name), path.join(checkout, place));
  }
}

/** Wine 8 has no time of TCP's keep-alive, without which Node's `fetch` connects nowhere. */
const WITHOUT_KEEP_ALIVE = `import net from 'node:net';
net.Socket.prototype.setKeepAlive = function () { return this; };
`;
/** It has no such library, which vitest's packages in Rust ask for. */
const RANDOM = `char SystemFunction036(void *, unsigned);
int ProcessPrng(void *to, unsigned long long bytes) { return SystemFunction036(to, bytes); }
`;

/** All of vitest runs there. */
function inside([command, ...words], checkout, vitest) {
  const source = path.join(checkout, '..', 'random.c');
  fs.writeFileSync(source, RANDOM);
  const preload = path.join(checkout, '..', 'preload.mjs');
  fs.writeFileSync(preload, WITHOUT_KEEP_ALIVE);
  const library = path.join(process.env.WINEPREFIX, 'drive_c/windows/system32/bcryptprimitives.dll');
  execFileSync('x86_64-w64-mingw32-gcc', ['-shared', '-o', library, source, '-ladvapi32']);
  const log = path.join(checkout, '..', 'log.txt'); // wine's Node cannot write to a pipe of this system
  const file = fs.openSync(log, 'w');
  const { status } = spawnSync(command, [...words, ...vitest], {
    cwd: checkout,
    env: { ...process.env, NODE_OPTIONS: `--import file:///Z:${preload}` },
    stdio: ['ignore', file, file],
  });
  process.stdout.write(fs.readFileSync(log, 'utf8'));
  return status;
}

/** Only the workers run there: vitest starts them, and they their own processes, by the path of Node. */
function outside(command, checkout, vitest) {
  const node = path.join(checkout, '..', 'node');
  fs.writeFileSync(node, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(' ')} "$@"\n`, {
    mode: 0o755,
  });
  const preload = path.join(checkout, '..', 'preload.mjs');
  fs.writeFileSync(preload, `process.execPath = ${JSON.stringify(node)};\n`);
  const env = { ...process.env, NODE_OPTIONS: `--import ${preload}` };
  return spawnSync(process.execPath, vitest, { cwd: checkout, env, stdio: 'inherit' }).status;
}
