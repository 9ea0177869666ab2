// Proves the package: packs it, installs the tarball into an empty folder with no compiler on the PATH, and runs the README's
// program there, its model downloaded from a server of this machine; then takes the prebuilt addon away and lets the package build
// its own with a compiler.
// --no-build: without the second half.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const prebuilds = `prebuilds/${process.platform}-${process.arch}`;
const NEEDED = [
  'LICENSE',
  'README.md',
  'dist/index.js',
  'dist/index.d.ts',
  'dist/rl/report/page/page.html',
  'dist/serve/page/main.js',
  'dist/apps/cli/index.js',
  'models/onpolicy-tiny.gguf',
  'bench/model/make.mjs',
  'models/seeing/onpolicy-seeing.gguf',
  'models/seeing/mmproj-onpolicy-seeing.gguf',
  'native/include/llama.h',
  ...['onpolicy', 'grammar', 'decoder'].map((name) => `${prebuilds}/${name}.node`),
];
const UNWANTED =
  /^(src|test|bench\/(?!README|results\/decode\.|lib\/progress|model\/)|scripts\/(?!build-addon\.mjs$)|native\/build|node_modules|dist\/demo)|testing\.node$/;
const COMPILERS = [
  'cc',
  'gcc',
  'g++',
  'c++',
  'clang',
  'clang++',
  'make',
  'cmake',
  'git',
  'python3',
  'python',
];
const MAX_INSTALL_MIB = 75;
const MAX_FILES = 600;
const EXPECTED = 'The capital of Peru is Lima.\n';
/** Compiles a grammar and prints which letters may come first, as bits. */
const CONSTRAINED = `
import { compileConstraint, createVocabulary } from 'onpolicy/structured';
const vocabulary = createVocabulary({ tokens: ['a', 'b', 'c', ''], eosTokenIds: [3] });
const mask = new Int32Array(1);
(await compileConstraint({ choice: ['a', 'c'] }, vocabulary)).createMatcher().fillMask(mask);
console.log(mask[0]);
`;

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-package-'));
const app = path.join(work, 'app');
const installed = path.join(app, 'node_modules', 'onpolicy');
try {
  const tarball = pack();
  const bare = { ...process.env, PATH: pathWithoutCompilers(), HOME: work, USERPROFILE: work };
  install(tarball, bare);
  expect(
    (await answer(bare)) === EXPECTED,
    "the README's program answers with the prebuilt addon, without a compiler",
  );
  expect((await constrained(bare)) === '5\n', 'grammars work with the prebuilt addons');
  if (!process.argv.includes('--no-build')) {
    fs.rmSync(path.join(installed, 'prebuilds'), { recursive: true });
    expect(
      failure(() => npm(['rebuild', 'onpolicy', '--foreground-scripts'], bare)).includes('a C++20 compiler'),
      'without the prebuilt addon and a compiler the error names what is missing',
    );
    npm(['rebuild', 'onpolicy'], process.env);
    expect(fs.existsSync(path.join(installed, 'native/build/Release/onpolicy.node')), 'the addon is built');
    expect(
      (await answer(process.env)) === EXPECTED,
      "the README's program answers with the addon built from the package",
    );
    expect(
      (await constrained(process.env)) === '5\n',
      'grammars work with the addons built from the package',
    );
  }
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}

/** Packs the repository and checks what is in the tarball. */
function pack() {
  const output = npm(['pack', '--json', `--pack-destination=${work}`], process.env, root);
  const [{ filename, files, size }] = Object.values(JSON.parse(output.slice(output.search(/^[[{]/m))));
  const names = files.map((file) => file.path);
  for (const name of NEEDED) expect(names.includes(name), `the tarball holds ${name}`);
  const unwanted = names.filter((name) => UNWANTED.test(name));
  expect(unwanted.length === 0, `the tarball holds nothing that users do not need ${unwanted.join(' ')}`);
  expect(names.length < MAX_FILES, `the tarball holds fewer than ${MAX_FILES} files: ${names.length}`);
  console.log(`${filename}: ${names.length} files, ${(size / 2 ** 20).toFixed(1)} MiB`);
  return path.join(work, filename);
}

/** Installs the tarball as a user would, into a folder that holds nothing else. */
function install(tarball, env) {
  fs.mkdirSync(app);
  fs.writeFileSync(path.join(app, 'package.json'), '{ "private": true, "type": "module" }\n');
  const startMs = performance.now();
  npm(['install', tarball, '--prefer-offline', '--no-audit', '--no-fund'], env);
  const seconds = (performance.now() - startMs) / 1000;
  const size = sizeOf(path.join(app, 'node_modules')) / 2 ** 20;
  console.log(`an install: ${size.toFixed(0)} MiB, ${seconds.toFixed(1)} s`);
  expect(size <= MAX_INSTALL_MIB, `it takes at most ${MAX_INSTALL_MIB} MiB`);
  expect(
    fs.existsSync(path.join(installed, prebuilds, 'onpolicy.node')),
    'it installs into an empty folder without a compiler',
  );
  expect(!fs.existsSync(path.join(installed, 'native', 'build')), 'nothing was compiled');
}

function sizeOf(folder) {
  return fs
    .readdirSync(folder, { recursive: true })
    .reduce((size, file) => size + fs.lstatSync(path.join(folder, file)).size, 0);
}

/** A folder with links to Node, npm and the system's small tools, without a compiler. */
function pathWithoutCompilers() {
  const bin = path.join(work, 'bin');
  fs.mkdirSync(bin);
  fs.symlinkSync(process.execPath, path.join(bin, 'node'));
  for (const tool of ['npm', 'sh', 'env', 'cat', 'ls', 'mkdir', 'rm', 'uname', 'dirname', 'basename', 'sed'])
    fs.symlinkSync(
      execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim(),
      path.join(bin, tool),
    );
  const found = COMPILERS.filter((tool) => fs.existsSync(path.join(bin, tool)));
  expect(found.length === 0, 'the PATH has no compiler');
  return bin;
}

/** Runs the first program of the README, with the embedded model as the one to download, and returns what it prints. */
async function answer(env) {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const program = /```js\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const lines = program.trimEnd().split('\n').length;
  expect(lines > 1 && lines <= 10, `the README's program has at most ten lines: ${lines}`);
  const hub = serveModel();
  await once(hub, 'listening');
  const options = `'hf:onpolicy/tiny/tiny.gguf', hub: { endpoint: 'http://127.0.0.1:${hub.address().port}' }`;
  const local = program.replace(/'hf:[^']+'/, options);
  expect(local !== program, 'the program downloads a model');
  fs.writeFileSync(path.join(app, 'program.js'), local);
  const { stdout } = await promisify(execFile)(process.execPath, ['program.js'], {
    cwd: app,
    env,
    encoding: 'utf8',
    timeout: 120_000,
  });
  hub.close();
  return stdout;
}

async function constrained(env) {
  fs.writeFileSync(path.join(app, 'constrained.js'), CONSTRAINED);
  const options = { cwd: app, env, encoding: 'utf8', timeout: 120_000 };
  return (await promisify(execFile)(process.execPath, ['constrained.js'], options)).stdout;
}

/** A server that has one model, under every path. */
function serveModel() {
  const model = fs.readFileSync(path.join(root, 'models', 'onpolicy-tiny.gguf'));
  const hub = http.createServer(({ headers }, response) => {
    const [, first = 0, last = model.length - 1] = /bytes=(\d+)-(\d+)/.exec(headers.range ?? '') ?? [];
    response.writeHead(headers.range ? 206 : 200, {
      'accept-ranges': 'bytes',
      'content-length': last - first + 1,
      'content-range': `bytes ${first}-${last}/${model.length}`,
    });
    response.end(model.subarray(Number(first), Number(last) + 1));
  });
  return hub.listen(0, '127.0.0.1');
}

function npm(args, env, cwd = app) {
  return execFileSync('npm', args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The output of a command that must fail. */
function failure(work) {
  try {
    work();
  } catch (error) {
    return `${error.stdout}${error.stderr}`;
  }
  return '';
}

function expect(condition, claim) {
  console.log(`${condition ? 'ok' : 'NOT'}  ${claim}`);
  if (!condition) throw new Error(`the package check failed: ${claim}`);
}
