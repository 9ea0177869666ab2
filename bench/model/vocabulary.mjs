// A vocabulary's name -> its GGUF file, extracted once from the llama.cpp sources that node-llama-cpp ships as a git bundle.
// A size -> the vocabulary of the embedded model with that many tokens.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { extended, readKeyValues } from './gguf.mjs';

/** Path of `ggml-vocab-<name>.gguf` in `folder`; extracted if absent. */
export function extractVocabulary(name, folder) {
  const file = path.join(folder, `ggml-vocab-${name}.gguf`);
  if (fs.existsSync(file)) return file;
  fs.mkdirSync(folder, { recursive: true });
  const bundle = path.resolve(
    path.dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))),
    '../llama/gitRelease.bundle',
  );
  const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-vocabulary-'));
  try {
    const git = (...words) => execFileSync('git', words, { stdio: ['ignore', 'ignore', 'inherit'] });
    git('clone', '--quiet', '--no-checkout', bundle, clone);
    git('-C', clone, 'checkout', '--quiet', 'HEAD', '--', `models/ggml-vocab-${name}.gguf`);
    const partial = `${file}.${process.pid}.partial`; // another process may write the same file
    fs.copyFileSync(path.join(clone, 'models', `ggml-vocab-${name}.gguf`), partial);
    fs.renameSync(partial, file);
  } finally {
    fs.rmSync(clone, { recursive: true, force: true });
  }
  return file;
}

const UNUSED_TOKEN = 5;

/** The embedded model's tokenizer: its key-values, and the ids of a shape. Tokens that are added are never said. */
export function embeddedVocabulary(size) {
  const embedded = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
  const keyValues = readKeyValues(embedded);
  const texts = (count, first) => Array.from({ length: count }, (_, i) => `<unused ${first + i}>`);
  const more = { tokens: texts, token_type: (count) => new Array(count).fill(UNUSED_TOKEN) };
  for (const [key, itemsOf] of Object.entries(more)) {
    const name = `tokenizer.ggml.${key}`;
    keyValues.set(name, extended(keyValues.get(name), size, itemsOf));
  }
  const idOf = (kind) => keyValues.get(`tokenizer.ggml.${kind}_token_id`).readUInt32LE(4);
  return { vocabulary: keyValues, ids: { bosId: idOf('bos'), eosId: idOf('eos'), padId: idOf('padding') } };
}
