// Builds the decoder of pictures and sounds: llama.cpp's `mtmd` out of node-llama-cpp's own git bundle, compiled with the
// files of native/media/decoder into a library beside the addon. Takes two minutes of compiler, so set-up does not wait for it.
// --if-missing: does nothing when it is built of the same sources.
// --prebuild: also copies it to prebuilds/<platform>-<arch>/ for packing.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import lockfile from 'proper-lockfile';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const folder = path.join(root, 'native', 'media', 'decoder');
const source = path.join(folder, 'source');
const built = path.join(folder, 'build', 'Release', 'decoder.node');
const stamp = path.join(folder, 'build', 'sources.sha256');
const prebuilt = path.join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'decoder.node');
const require = createRequire(path.join(root, 'package.json'));
const flags = new Set(process.argv.slice(2));

/** Folders of llama.cpp's sources that the decoder needs. */
const PARTS = ['include', 'ggml/include', 'tools/mtmd', 'vendor/stb', 'vendor/miniaudio'];
/** Header that names llama.cpp's version, as none of its own does. */
const VERSION = 'onpolicy-engine-version.h';
/** Another process that builds is waited for: this often, and this long at most. */
const WAIT = { retries: 1200, minTimeout: 500, maxTimeout: 500, factor: 1 };

try {
  if (process.platform === 'win32') throw new Error('it is not built on Windows');
  const unlock = await lockfile.lock(folder, { retries: WAIT, stale: 60_000 });
  try {
    if (!(flags.has('--if-missing') && isUsable())) await build();
  } finally {
    await unlock();
  }
  if (flags.has('--prebuild')) {
    fs.mkdirSync(path.dirname(prebuilt), { recursive: true });
    fs.copyFileSync(built, prebuilt);
  }
} catch (error) {
  process.stderr.write(`onpolicy: the decoder of pictures and sounds could not be built: ${error.message}\n`);
  process.exitCode = 1;
}

function isUsable() {
  return fs.existsSync(built) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === sourcesHash();
}

async function build() {
  process.stderr.write(
    'onpolicy: building the decoder of pictures and sounds, which takes about two minutes\n',
  );
  extractSource();
  const isConfigured = fs.existsSync(path.join(folder, 'build', 'Makefile'));
  const steps = isConfigured ? ['configure', 'build'] : ['rebuild'];
  const nodeGyp = require.resolve('node-gyp/bin/node-gyp.js');
  const options = ['-C', folder, '--loglevel=warn', ...nodeHeaders()];
  // Asynchronous, so that the lock is renewed: a lock without renewal for a minute counts as abandoned.
  const compiler = spawn(process.execPath, [nodeGyp, ...steps, ...options], {
    stdio: ['ignore', 2, 2],
    cwd: folder,
    env: { ...process.env, JOBS: String(os.availableParallelism()) },
  });
  const [code] = await once(compiler, 'exit');
  if (code !== 0) throw new Error('node-gyp failed; the lines above say why');
  fs.writeFileSync(stamp, sourcesHash());
}

/** One hash over our sources and the origin of llama.cpp's. */
function sourcesHash() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const files = [
    ...fs.readdirSync(folder).map((name) => path.join(folder, name)),
    path.join(root, 'native', 'media', 'decoder.h'),
    path.join(root, 'native', 'base', 'status.h'),
  ];
  for (const file of files.filter((name) => /\.(cc|h|gyp|cjs)$/.test(name)).sort())
    hash.update(path.basename(file)).update('\0').update(fs.readFileSync(file));
  return hash.update(fs.readFileSync(bundle().infoFile)).digest('hex');
}

function bundle() {
  const llama = path.resolve(
    path.dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))),
    '..',
    'llama',
  );
  return { file: path.join(llama, 'gitRelease.bundle'), infoFile: path.join(llama, 'llama.cpp.info.json') };
}

/** llama.cpp's sources come from the installed package, so they always match its libraries. */
function extractSource() {
  const { file, infoFile } = bundle();
  const marker = path.join(source, 'origin.json');
  const origin = fs.readFileSync(infoFile, 'utf8');
  const isThere = [marker, path.join(source, 'include', VERSION)].every((one) => fs.existsSync(one));
  if (isThere && fs.readFileSync(marker, 'utf8') === origin) return;
  fs.rmSync(source, { recursive: true, force: true });
  const git = (...words) => execFileSync('git', words, { stdio: ['ignore', 2, 2] });
  git('clone', '--quiet', '--no-checkout', file, source);
  git('-C', source, 'checkout', '--quiet', 'HEAD', '--', ...PARTS);
  fs.rmSync(path.join(source, '.git'), { recursive: true, force: true });
  fs.writeFileSync(path.join(source, 'include', VERSION), versionHeader(origin));
  fs.writeFileSync(marker, origin);
}

function versionHeader(origin) {
  return `#define ONPOLICY_ENGINE_VERSION "${JSON.parse(origin).tag.replace(/^v/, '')}"\n`;
}

/** Node's own headers, when they lie beside the executable: no download is needed then. */
function nodeHeaders() {
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  return fs.existsSync(path.join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}
