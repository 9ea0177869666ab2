/** Imports in src point one way: a file imports only from what stands above it in this list. A new file or folder is given its place. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));

/** From leaves to roots. `name/` is a folder whose files are free among themselves, `folder/name` one file of a folder. */
const ORDER = [
  'errors',
  'shared',
  // Leaf libraries: each stands alone.
  'batches',
  'durable-files',
  'on-disk',
  'stop-strings',
  'text-reader',
  'kv-ledger',
  'prefix-cache',
  'utf8',
  'tokenizer',
  'turns',
  'template/',
  'structured/addon-types',
  'tool-calls/',
  'tool-calls',
  'reasoning/',
  'reasoning',
  // The wire.
  'protocol/',
  'message-format',
  'message-out',
  'served-template',
  // The door to native code, and what computes.
  'sampling/native-sampler',
  'rl/adapter-weights',
  'rl/native-trainer',
  'native',
  'structured/',
  'sampling/logprobs',
  'backends/backend',
  'backends/libraries',
  'backends/model',
  'backends/row-edits',
  'backends/gguf',
  'onnx/',
  'backends/onnx',
  // The request path.
  'template-message',
  'prompt',
  'text-out',
  'sampling/prompt-scores',
  'sampling/beam-search',
  'sampling/stop-tail',
  'sampling/logits-hook',
  'sequence',
  'slots',
  'scheduler',
  'step-layout',
  'engine',
  'adapters',
  'kv-transfer',
  'models',
  'serving',
  'sampling/plan',
  'constraint',
  'sampling/logits-processors',
  'choice',
  'beam-run',
  'completion',
  'response',
  'stream',
  'prompt-transfer',
  'answer',
  'service',
  // What sits above the request path.
  'rl/',
  'store/',
  'training/',
  'report/',
  'runtime-options',
  'runtime',
  'default-runtime',
  'http/',
  'index',
  'cli/',
  'demo-learning',
  'demo',
];

type Import = { readonly from: string; readonly to: string };

/** Path without extension, relative to src, with forward slashes. */
function nameOf(file: string): string {
  return path.relative(SRC, file).replaceAll(path.sep, '/').replace(/\.ts$/, '');
}

function sources(): string[] {
  return fs
    .readdirSync(SRC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name));
}

/** Every relative import, type-only and dynamic ones included, and every worker file. */
function importsOf(file: string): Import[] {
  const specifiers = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*'(\.{1,2}\/[^']+\.ts)'/g;
  return [...fs.readFileSync(file, 'utf8').matchAll(specifiers)].map(([, specifier]) => ({
    from: nameOf(file),
    to: nameOf(path.resolve(path.dirname(file), specifier!)),
  }));
}

/** Position in the list: the file's own entry, else that of its folder. -1: none. */
function placeOf(name: string): number {
  const own = ORDER.indexOf(name);
  return own >= 0 || !name.includes('/') ? own : ORDER.indexOf(`${name.slice(0, name.indexOf('/'))}/`);
}

const files = sources();
const imports = files.flatMap(importsOf);

describe('imports in src', () => {
  it('are found', () => {
    expect(imports).toContainEqual({ from: 'runtime', to: 'models' });
    expect(imports).toContainEqual({ from: 'index', to: 'default-runtime' });
  });

  it('every file has its place', () => {
    expect(files.map(nameOf).filter((name) => placeOf(name) < 0)).toEqual([]);
  });

  it('point one way', () => {
    const wrong = imports.filter(({ from, to }) => {
      const isSameFolder = placeOf(from) === placeOf(to) && ORDER[placeOf(from)]!.endsWith('/');
      return !isSameFolder && placeOf(to) >= placeOf(from);
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });
});
