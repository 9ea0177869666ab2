// The installed llama.cpp libraries -> small programs that link them: `bare`, which runs llama_decode alone, `quantize`, and
// `matmul`, with the addon's kernels. Built once per version.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MODELS_FOLDER } from '../model/make.mjs';

const native = fileURLToPath(new URL('../../native', import.meta.url));

/** The folder with libllama and libggml of a platform package of node-llama-cpp: `variant` is '', 'cuda' or 'vulkan'. */
export async function librariesFolder(variant = '') {
  const name = `${process.platform === 'darwin' ? 'mac' : process.platform}-${process.arch}${variant && `-${variant}`}`;
  const entry = createRequire(import.meta.url).resolve(`@node-llama-cpp/${name}`);
  const { getBinsDir } = await import(pathToFileURL(entry).href);
  return path.join(getBinsDir().binsDir, name);
}

/** Folders of our kernels and of what runs them in the engine. */
const KERNELS = [
  'base',
  'kernels/matmul',
  'kernels/attention',
  'engine-assumptions/table',
  'engine-assumptions/pool',
  'engine-assumptions/matmul',
  'engine-assumptions/attention',
];

/** Our kernels and what runs them in the engine, as parts of a program. */
export const kernelParts = () =>
  KERNELS.flatMap((folder) =>
    fs
      .readdirSync(path.join(native, folder))
      .filter((name) => name.endsWith('.cc'))
      .map((name) => `${folder}/${name}`),
  ).concat('kernels/best.cc');

/** Path of the program of this name, and its libraries. `parts`: files of native/ that belong to it. */
export async function buildBare({ name = 'bare', variant = '', parts = [] } = {}) {
  const source = fileURLToPath(new URL(`.//${name}.cc`, import.meta.url));
  const libraries = await librariesFolder(variant);
  const names = fs.readdirSync(libraries);
  const linked = ['libllama', 'libggml'].map((stem) => names.find((name) => name.startsWith(`${stem}.`)));
  const [, version = ''] = /(\.v[\d.]+)\.\w+$/.exec(linked[0]) ?? [];
  const program = path.join(MODELS_FOLDER, `${name}${variant && `-${variant}`}${version}`);
  linked.push(names.find((name) => name.startsWith('libggml-base.')));
  const sources = [source, ...parts.map((part) => path.join(native, part))];
  const inputs = [...sources, ...linked.map((name) => path.join(libraries, name))];
  const isNewer = (file) => fs.statSync(file).mtimeMs > fs.statSync(program).mtimeMs;
  if (!fs.existsSync(program) || inputs.some(isNewer)) {
    fs.mkdirSync(MODELS_FOLDER, { recursive: true });
    execFileSync(
      process.env.CXX ?? 'c++',
      ['-std=c++20', '-O3', '-ffp-contract=off', '-Wall', '-Wextra', ...sources]
        .concat('-I', native, '-I', path.join(native, 'include'), '-ldl', '-o', program)
        .concat(linked.map((name) => path.join(libraries, name)))
        .concat(`-Wl,-rpath,${libraries}`),
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
  }
  return { program, libraries };
}
