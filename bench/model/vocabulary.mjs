// A vocabulary's name -> its GGUF file, extracted once from the llama.cpp sources that node-llama-cpp ships as a git bundle.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Path of `ggml-vocab-<name>.gguf` in `folder`; extracted if absent. */
export function extractVocabulary(name, folder) {
  const file = path.join(folder, `ggml-vocab-${name}.gguf`);
  if (fs.existsSync(file)) return file;
  const bundle = path.resolve(
    path.dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))),
    '../llama/gitRelease.bundle',
  );
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-vocabulary-'));
  try {
    const git = (...words) => execFileSync('git', words, { stdio: ['ignore', 'ignore', 'inherit'] });
    git('clone', '--quiet', '--no-checkout', bundle, clone);
    git('-C', clone, 'checkout', '--quiet', 'HEAD', '--', `models/ggml-vocab-${name}.gguf`);
    fs.copyFileSync(path.join(clone, 'models', `ggml-vocab-${name}.gguf`), `${file}.partial`);
    fs.renameSync(`${file}.partial`, file);
  } finally {
    fs.rmSync(clone, { recursive: true, force: true });
  }
  return file;
}
