// Builds the addons, the main one, the grammar engine and that of the tests: llama.cpp's public headers out of node-llama-cpp's own git bundle, then node-gyp.
// --answers: only answers.node, what answers need, without the trainer, the grammar engine and kernels of our own. Programs load it until the
//   main addon is built, of the same object files. With --if-missing the main addon, if there was one.
// --testing: also builds the addon of the tests and benches, which no package has.
// --if-missing: builds none that is already here (a prebuilt one, or an earlier build of the same sources).
// --prebuild: also copies them to prebuilds/<platform>-<arch>/ for packing.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import lockfile from 'proper-lockfile';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const native = path.join(root, 'native');
const include = path.join(native, 'include');
/** The file that names the release of the headers. */
const headersOrigin = path.join(include, 'origin.json');
const builtFile = (addon) => path.join(native, 'build', 'Release', `${addon}.node`);
/** Says of which sources an addon is. The grammar engine is opened only if it is of those of the main addon. */
const stampFile = (addon) => path.join(native, 'build', `${addon}.sha256`);
const prebuiltFile = (addon) =>
  path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, `${addon}.node`);
const require = createRequire(path.join(root, 'package.json'));
const flags = new Set(process.argv.slice(2));
/** Description of each addon, and about how long it takes to build on two cores. */
const ADDONS = {
  answers: 'what answers need, which takes about half a minute',
  onpolicy: 'the addon, which takes about two minutes',
  grammar: 'the grammar engine, which takes about a minute',
  testing: 'the addon of the tests',
};
const ALWAYS = ['onpolicy', 'grammar'];
/** Another process that builds is waited for: this often, and this long at most. */
const WAIT = { retries: 1200, minTimeout: 500, maxTimeout: 500, factor: 1 };
/** llama.cpp's folders of public headers, and ggml's own headers that `native/engine-assumptions` needs. */
const HEADERS = [
  'include',
  'ggml/include',
  'ggml/src/ggml-backend-impl.h',
  'ggml/src/ggml-impl.h',
  'ggml/src/ggml-cpu/ggml-cpu-impl.h',
  'ggml/src/ggml-cpu/traits.h',
];

// A package without TypeScript sources is an installed one. It needs only a prebuilt binary that loads.
const isInstalledPackage = !fs.existsSync(path.join(root, 'src', 'index.ts'));

try {
  requireGlibc();
  const wanted = flags.has('--answers')
    ? [flags.has('--if-missing') && fs.existsSync(builtFile('onpolicy')) ? 'onpolicy' : 'answers']
    : [...ALWAYS, ...(flags.has('--testing') ? ['testing'] : [])];
  const missing = () => wanted.filter((addon) => !(flags.has('--if-missing') && isUsable(addon)));
  if (missing().length > 0) await alone(() => build(missing()));
  if (flags.has('--prebuild')) ALWAYS.forEach(copyToPrebuilds);
} catch (error) {
  process.stderr.write(`onpolicy: ${error.message}\n`);
  process.exitCode = 1;
}

/** Two processes would write the same files. */
async function alone(work) {
  const unlock = await lockfile.lock(native, { retries: WAIT, stale: 60_000 });
  try {
    await work();
  } finally {
    await unlock();
  }
}

function copyToPrebuilds(addon) {
  fs.mkdirSync(path.dirname(prebuiltFile(addon)), { recursive: true });
  fs.copyFileSync(builtFile(addon), prebuiltFile(addon));
}

/** The engine's packages are built against the GNU C library: without it nothing that is built here could run. */
function requireGlibc() {
  if (process.platform !== 'linux' || process.report.getReport().header.glibcVersionRuntime) return;
  throw new Error(
    'Linux with musl (Alpine) is not supported, as the engine needs the GNU C library: use a Debian, Ubuntu or Fedora image',
  );
}

function isUsable(addon) {
  if (isInstalledPackage && loads(prebuiltFile(addon))) return true;
  const stamp = stampFile(addon);
  return (
    fs.existsSync(builtFile(addon)) &&
    fs.existsSync(stamp) &&
    fs.readFileSync(stamp, 'utf8') === sourcesHash(addon)
  );
}

/** Returns true if the binary exists and loads on this system. An older C library, for example, cannot load it. */
function loads(file) {
  try {
    require(file);
    return true;
  } catch {
    return false;
  }
}

async function build(addons) {
  if (addons.length === 0) return; // another process has built them
  requireTools();
  process.stderr.write(`onpolicy: building ${addons.map((addon) => ADDONS[addon]).join('; ')}\n`);
  await extractHeaders();
  const isConfigured = fs.existsSync(path.join(native, 'build', 'Makefile'));
  const steps = [...(isConfigured ? [] : ['clean']), 'configure', 'build', ...addons];
  await run(process.execPath, [nodeGyp(), ...steps, '-C', native, '--loglevel=warn', ...nodeHeaders()], {
    cwd: native,
    env: { ...process.env, JOBS: String(os.availableParallelism()) },
  });
  for (const addon of addons) fs.writeFileSync(stampFile(addon), sourcesHash(addon));
}

/** One message that names everything missing, before anything is tried. On Windows node-gyp finds the tools itself. */
function requireTools() {
  const answers = (command) => !spawnSync(command, ['--version'], { stdio: 'ignore' }).error;
  const isWindows = process.platform === 'win32';
  const missing = [
    !engineSources() || answers('git') ? null : 'git',
    isWindows || answers('make') ? null : 'make',
    isWindows || [process.env.CXX, 'g++', 'c++', 'clang++'].some((compiler) => compiler && answers(compiler))
      ? null
      : 'a C++20 compiler (g++ 10 or clang 12, or newer)',
    ['python3', 'python'].some(answers) || process.env.npm_config_python ? null : 'python3',
  ].filter((name) => name !== null);
  if (missing.length === 0) return;
  throw new Error(
    `missing ${missing.join(', ')}. On Debian and Ubuntu: apt-get install git g++ make python3; ` +
      'on macOS: xcode-select --install; on Windows: the C++ workload of the Visual Studio Build Tools, git and Python',
  );
}

/** One hash over the native sources and the headers' origin: unchanged means nothing to build. */
function sourcesHash(addon) {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const files = [native, ...(addon === 'testing' ? [path.join(root, 'test', 'addon')] : [])]
    .flatMap((folder) => fs.readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.(cc|h|gyp|cjs)$/.test(entry.name))
    .map((entry) => path.relative(native, path.join(entry.parentPath, entry.name)))
    .filter((file) => !/^(build|include|media[\\/]decoder)[\\/]/.test(file))
    .sort();
  for (const file of files)
    hash
      .update(file)
      .update('\0')
      .update(fs.readFileSync(path.join(native, file)));
  hash.update(fs.readFileSync(engineSources()?.infoFile ?? headersOrigin));
  return hash.digest('hex');
}

/** llama.cpp's sources in node-llama-cpp, which is here for development; null in an installed package, which has the headers. */
function engineSources() {
  if (isInstalledPackage) return null;
  let entry;
  try {
    entry = fileURLToPath(import.meta.resolve('node-llama-cpp'));
  } catch (cause) {
    throw new Error('the package node-llama-cpp is not installed', { cause });
  }
  const folder = path.resolve(path.dirname(entry), '..', 'llama');
  return {
    bundle: path.join(folder, 'gitRelease.bundle'),
    infoFile: path.join(folder, 'llama.cpp.info.json'),
  };
}

/** llama.cpp's headers come from the package with its libraries, so that they match. */
async function extractHeaders() {
  const sources = engineSources();
  if (!sources) return;
  const { bundle, infoFile } = sources;
  const origin = fs.readFileSync(infoFile, 'utf8') + HEADERS.join('\n');
  if (fs.existsSync(headersOrigin) && fs.readFileSync(headersOrigin, 'utf8') === origin) return;
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-headers-'));
  try {
    await run('git', ['clone', '--quiet', '--no-checkout', bundle, clone]);
    await run('git', ['-C', clone, 'checkout', '--quiet', 'HEAD', '--', ...HEADERS]);
    fs.rmSync(include, { recursive: true, force: true });
    fs.mkdirSync(include, { recursive: true });
    for (const entry of HEADERS) {
      const folder = path.join(clone, entry);
      const files = entry.endsWith('.h')
        ? [folder]
        : fs.readdirSync(folder).map((name) => path.join(folder, name));
      for (const file of files.filter((name) => name.endsWith('.h')))
        fs.copyFileSync(file, path.join(include, path.basename(file)));
    }
    fs.writeFileSync(headersOrigin, origin);
  } finally {
    fs.rmSync(clone, { recursive: true, force: true });
  }
}

function nodeGyp() {
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    if (process.env.npm_config_node_gyp) return process.env.npm_config_node_gyp; // npm brings its own
    throw new Error('node-gyp was not found: run this through npm, for example with "npm rebuild onpolicy"');
  }
}

/** Node's own headers, when they lie beside the executable: no download is needed then. */
function nodeHeaders() {
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  return fs.existsSync(path.join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

/** Resolves when the command ends well. The event loop stays free for the lock. */
async function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 2, 2], ...options });
  const code = await new Promise((resolve) => child.on('error', () => resolve(-1)).on('exit', resolve));
  if (code === 0) return;
  const name = command === process.execPath ? 'node-gyp' : command;
  throw new Error(`${name} failed; the lines above say why`);
}
