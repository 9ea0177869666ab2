// Builds llama.cpp's own server out of the sources that node-llama-cpp ships, to measure against and to test the client with:
//   node scripts/build-llama-server.mjs     prints the program's path; needs cmake and a C++ compiler, and takes minutes
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const bundle = path.join(root, 'node_modules', 'node-llama-cpp', 'llama', 'gitRelease.bundle');
const sources = path.join(root, 'bench', 'models', 'llama.cpp'); // ignored by git
const build = path.join(root, 'bench', 'models', 'llama-server');
const program = path.join(build, 'bin', process.platform === 'win32' ? 'llama-server.exe' : 'llama-server');

const OPTIONS = {
  CMAKE_BUILD_TYPE: 'Release',
  BUILD_SHARED_LIBS: 'OFF',
  LLAMA_BUILD_TESTS: 'OFF',
  LLAMA_BUILD_EXAMPLES: 'OFF',
  LLAMA_BUILD_APP: 'OFF',
  LLAMA_BUILD_UI: 'OFF',
  LLAMA_USE_PREBUILT_UI: 'OFF', // it would be downloaded
  LLAMA_OPENSSL: 'OFF',
};

if (!fs.existsSync(program)) {
  if (!fs.existsSync(sources)) run('git', 'clone', '--quiet', bundle, sources);
  const options = Object.entries(OPTIONS).map(([name, value]) => `-D${name}=${value}`);
  run('cmake', '-S', sources, '-B', build, ...options);
  run('cmake', '--build', build, '--target', 'llama-server', '-j', String(os.availableParallelism()));
}
process.stdout.write(`${program}\n`);

function run(command, ...words) {
  execFileSync(command, words, { stdio: ['ignore', 2, 2] });
}
