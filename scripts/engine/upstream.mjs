// A release of node-llama-cpp -> llama.cpp's sources in it: single files, and the numbers of its binary interface.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { unpack } from './registry.mjs';

/** Folders that are read. */
const PARTS = ['include', 'ggml/include', 'ggml/src', 'src', 'tools/mtmd'];
/** Folders of the headers that layout.cc includes, directly or not. */
const HEADERS = ['include', 'ggml/include', 'ggml/src', 'ggml/src/ggml-cpu'];

/** Returns the version of llama.cpp, `list(folder)`, the files in a folder, and `read(file)`, the text of one; empty if it is not there. */
export async function upstream(release) {
  const folder = path.join(await unpack('node-llama-cpp', release), 'llama');
  const { tag } = JSON.parse(fs.readFileSync(path.join(folder, 'llama.cpp.info.json'), 'utf8'));
  const sources = path.join(folder, 'sources');
  if (!fs.existsSync(sources)) checkOut(folder, sources);
  return {
    release,
    version: tag.replace(/^v/, ''),
    list: (inside) => fs.readdirSync(path.join(sources, inside)).map((name) => `${inside}/${name}`),
    read: (file) => {
      const full = path.join(sources, file);
      return fs.existsSync(full) ? fs.readFileSync(full, 'utf8') : '';
    },
    layout: () => layoutOf(folder, sources),
  };
}

function checkOut(folder, sources) {
  const work = fs.mkdtempSync(`${sources}-`);
  const git = (...words) => execFileSync('git', words, { stdio: ['ignore', 'ignore', 'inherit'] });
  git('clone', '--quiet', '--no-checkout', path.join(folder, 'gitRelease.bundle'), work);
  git('-C', work, 'checkout', '--quiet', 'HEAD', '--', ...PARTS);
  fs.rmSync(path.join(work, '.git'), { recursive: true });
  fs.renameSync(work, sources);
}

/** Compiles and runs layout.cc with the headers of a release, and returns its lines. */
function layoutOf(folder, sources) {
  const program = path.join(folder, 'layout');
  const includes = HEADERS.map((part) => `-I${path.join(sources, part)}`);
  const source = path.join(import.meta.dirname, 'layout.cc');
  execFileSync(process.env.CXX ?? 'c++', ['-std=c++20', '-w', ...includes, source, '-o', program]);
  return execFileSync(program, { encoding: 'utf8' }).trim().split('\n');
}
