// Builds the addon: llama.cpp's public headers out of node-llama-cpp's own git bundle, then node-gyp.
// --if-missing: does nothing when a usable binary is already here (a prebuilt one, or an earlier build of the same sources).
// --prebuild: also copies the binary to prebuilds/<platform>-<arch>/ for packing.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const native = path.join(root, 'native');
const built = path.join(native, 'build', 'Release', 'onpolicy.node');
const stamp = path.join(native, 'build', 'sources.sha256');
const prebuilt = path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'onpolicy.node');
const require = createRequire(path.join(root, 'package.json'));
const flags = new Set(process.argv.slice(2));

/** One hash over the native sources and the headers' origin: unchanged means nothing to build. */
function sourcesHash() {
  const hash = createHash('sha256');
  const files = fs
    .readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(cc|h|gyp)$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !/[\\/](build|include)[\\/]/.test(path.relative(root, file)))
    .sort();
  for (const file of files) hash.update(path.relative(native, file)).update(fs.readFileSync(file));
  hash.update(fs.readFileSync(bundleInfo().infoFile));
  return hash.digest('hex');
}

function bundleInfo() {
  const folder = path.resolve(
    path.dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))),
    '..',
    'llama',
  );
  return {
    bundle: path.join(folder, 'gitRelease.bundle'),
    infoFile: path.join(folder, 'llama.cpp.info.json'),
  };
}

/** llama.cpp's headers come from the installed package, so they always match its libraries. */
function extractHeaders() {
  const { bundle, infoFile } = bundleInfo();
  const include = path.join(native, 'include');
  const marker = path.join(include, 'origin.json');
  const origin = fs.readFileSync(infoFile, 'utf8');
  if (fs.existsSync(marker) && fs.readFileSync(marker, 'utf8') === origin) return;
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-headers-'));
  try {
    run('git', ['clone', '--quiet', '--no-checkout', bundle, clone]);
    run('git', ['-C', clone, 'checkout', '--quiet', 'HEAD', '--', 'include', 'ggml/include', 'LICENSE']);
    fs.rmSync(include, { recursive: true, force: true });
    fs.mkdirSync(include, { recursive: true });
    for (const folder of ['include', 'ggml/include'])
      for (const name of fs.readdirSync(path.join(clone, folder)))
        if (name.endsWith('.h')) fs.copyFileSync(path.join(clone, folder, name), path.join(include, name));
    fs.writeFileSync(marker, origin);
  } finally {
    fs.rmSync(clone, { recursive: true, force: true });
  }
}

function nodeGyp() {
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    if (process.env['npm_config_node_gyp']) return process.env['npm_config_node_gyp'];
    throw new Error('node-gyp was not found: run this through npm, or install node-gyp');
  }
}

/** Node's own headers, when they lie beside the executable: no download is needed then. */
function nodeHeaders() {
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  return fs.existsSync(path.join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

function run(command, args, options = {}) {
  execFileSync(command, args, { stdio: 'inherit', ...options });
}

function build() {
  extractHeaders();
  const gyp = nodeGyp();
  const step = fs.existsSync(path.join(native, 'build', 'Makefile')) ? ['configure', 'build'] : ['rebuild'];
  const env = { ...process.env, JOBS: String(os.availableParallelism()) };
  run(process.execPath, [gyp, ...step, '-C', native, '--loglevel=warn', ...nodeHeaders()], {
    env,
    cwd: native,
  });
  fs.writeFileSync(stamp, sourcesHash());
}

function isCurrent() {
  return fs.existsSync(built) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === sourcesHash();
}

// A package without its TypeScript sources is an installed one: there a fitting prebuilt binary is all it needs.
const isInstalledPackage = !fs.existsSync(path.join(root, 'src', 'native.ts'));
if (flags.has('--if-missing') && isInstalledPackage && fs.existsSync(prebuilt)) process.exit(0);
if (!(flags.has('--if-missing') && isCurrent())) build();
if (flags.has('--prebuild')) {
  fs.mkdirSync(path.dirname(prebuilt), { recursive: true });
  fs.copyFileSync(built, prebuilt);
}
