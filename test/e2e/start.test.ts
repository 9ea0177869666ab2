/** Files that a program loads when it imports the library: a few, and only packages that its first answer needs. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './program.ts';

/** The files of `dist` and the packages that a file imports before it runs. */
function loadedBy(file: string, found = { files: new Set<string>(), packages: new Set<string>() }) {
  if (found.files.has(file)) return found;
  found.files.add(file);
  const imports = fs.readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^;]*?["']([^"']+)["'];/gm);
  for (const [, name] of imports) {
    if (name!.startsWith('.')) loadedBy(path.resolve(path.dirname(file), name!), found);
    else if (!name!.startsWith('node:')) found.packages.add(name!);
  }
  return found;
}

describe.each([
  ['index.js', 5],
  ['rl/loss-worker.js', 3],
  ['onnx/worker.js', 4], // with the helpers that the loss worker has, too
  ['runtime/isolation/program.js', 6],
])('dist/%s', (name, files) => {
  const loaded = loadedBy(path.join(ROOT, 'dist', name));

  it(`is ${files} files at most`, () => {
    const names = [...loaded.files].map((file) => path.relative(ROOT, file));
    expect(names.length, names.join(' ')).toBeLessThanOrEqual(files);
  });

  it('loads no package before it is needed', () => {
    const late = [
      ...(name === 'index.js' ? ['nunjucks'] : []),
      'piscina',
      '@fastify/busboy',
      'commander',
      'uplot',
      'onnxruntime-node',
    ];
    expect([...loaded.packages].filter((name) => late.includes(name))).toEqual([]);
  });
});
