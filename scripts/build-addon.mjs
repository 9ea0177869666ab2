// Builds the addon: llama.cpp's public headers out of node-llama-cpp's own git bundle, then node-gyp.
// --if-missing: does nothing when a usable binary is already here (a prebuilt one, or an earlier build of the same sources).
// --prebuild: also copies the binary to prebuilds/<platform>-<arch>/ for packing.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const native = path.join(root, 'native');
const built = path.join(native, 'build', 'Release', 'onpolicy.node');
const include = path.join(native, 'include');
/** Which release the headers are of. */
const headersOrigin = path.join(include, 'origin.json');
const stamp = path.join(native, 'build', 'sources.sha256');
const prebuilt = path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'onpolicy.node');
const require = createRequire(path.join(root, 'package.json'));
const flags = new Set(process.argv.slice(2));
/** llama.cpp's folders of public headers, and ggml's own headers that `native/products` needs. */
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
  if (!(flags.has('--if-missing') && isUsable())) build();
  if (flags.has('--prebuild')) {
    fs.mkdirSync(path.dirname(prebuilt), { recursive: true });
    fs.copyFileSync(built, prebuilt);
  }
} catch (error) {
  process.stderr.write(`onpolicy: ${error.message}\n`);
  process.exitCode = 1;
}

/** The engine's packages are built against the GNU C library: without it nothing that is built here could run. */
function requireGlibc() {
  if (process.platform !== 'linux' || process.report.getReport().header.glibcVersionRuntime) return;
  throw new Error(
    'Linux with musl (Alpine) is not supported, as the engine needs the GNU C library: use a Debian, Ubuntu or Fedora image',
  );
}

function isUsable() {
  if (isInstalledPackage && loads(prebuilt)) return true;
  return fs.existsSync(built) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === sourcesHash();
}

/** Whether the binary exists and fits this system: an older C library, for example, cannot load it. */
function loads(file) {
  try {
    require(file);
    return true;
  } catch {
    return false;
  }
}

function build() {
  requireTools();
  process.stderr.write('onpolicy: building the addon, which takes about a minute\n');
  extractHeaders();
  const isConfigured = fs.existsSync(path.join(native, 'build', 'Makefile'));
  const steps = isConfigured ? ['configure', 'build'] : ['rebuild'];
  run(process.execPath, [nodeGyp(), ...steps, '-C', native, '--loglevel=warn', ...nodeHeaders()], {
    cwd: native,
    env: { ...process.env, JOBS: String(os.availableParallelism()) },
  });
  fs.writeFileSync(stamp, sourcesHash());
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
function sourcesHash() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const files = fs
    .readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(cc|h|gyp|cjs)$/.test(entry.name))
    .map((entry) => path.relative(native, path.join(entry.parentPath, entry.name)))
    .filter((file) => !/^(build|include|decoder)[\\/]/.test(file))
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
function extractHeaders() {
  const sources = engineSources();
  if (!sources) return;
  const { bundle, infoFile } = sources;
  const origin = fs.readFileSync(infoFile, 'utf8') + HEADERS.join('\n');
  if (fs.existsSync(headersOrigin) && fs.readFileSync(headersOrigin, 'utf8') === origin) return;
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-headers-'));
  try {
    run('git', ['clone', '--quiet', '--no-checkout', bundle, clone]);
    run('git', ['-C', clone, 'checkout', '--quiet', 'HEAD', '--', ...HEADERS]);
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

function run(command, args, options = {}) {
  try {
    execFileSync(command, args, { stdio: ['ignore', 2, 2], ...options });
  } catch (cause) {
    const name = command === process.execPath ? 'node-gyp' : command;
    throw new Error(`${name} failed; the lines above say why`, { cause });
  }
}
