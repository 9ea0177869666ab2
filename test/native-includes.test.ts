/** Includes in native/ point one way: a folder includes only folders above it in this list. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const NATIVE = fileURLToPath(new URL('../native/', import.meta.url));

/** From leaves to roots. */
const ORDER = [
  'base',
  'threads',
  'json',
  'regex',
  'pushdown',
  'mask',
  'json-schema',
  'notations',
  'sampler',
  'drafts',
  'rows',
  'matmul',
  'attention',
  'llama',
  'media',
  'decoder',
  'kernels',
  'graphs',
  'weights',
  'trainer',
  'napi',
];

/** Made by the build: its output, and llama.cpp's headers. */
const MADE = ['build', 'include'];

type Include = { readonly from: string; readonly to: string };

const folders = fs
  .readdirSync(NATIVE, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !MADE.includes(entry.name))
  .map((entry) => entry.name);

const files = folders.flatMap((folder) =>
  fs
    .readdirSync(path.join(NATIVE, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:h|cc)$/.test(file) && !/^(?:build|source)[\\/]/.test(file)) // of the decoder: made by its build
    .map((file) => `${folder}/${file.replaceAll(path.sep, '/')}`),
);

const includes: Include[] = files.flatMap((from) =>
  [...fs.readFileSync(path.join(NATIVE, from), 'utf8').matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)]
    .map(([, to]) => ({ from, to: to! }))
    .filter(({ to }) => files.includes(to) || to.includes('/')),
);

const folderOf = (file: string) => file.slice(0, file.indexOf('/'));

/** Every circle of includes, found depth first; `done`: files that were visited. */
function circles(): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]) => {
    if (way.includes(file)) found.push([...way.slice(way.indexOf(file)), file].join(' -> '));
    else if (!done.has(file)) {
      for (const { from, to } of includes) if (from === file) visit(to, [...way, file]);
      done.add(file);
    }
  };
  for (const file of files) visit(file, []);
  return found;
}

describe('includes in native', () => {
  it('are found', () => {
    expect(includes).toContainEqual({ from: 'napi/unwrap.h', to: 'llama/model.h' });
    expect(includes).toContainEqual({ from: 'regex/pool.h', to: 'regex/search.h' });
  });

  it('every folder has its place', () => {
    expect([...folders].sort()).toEqual([...ORDER].sort());
  });

  it('name files by their path from native/', () => {
    const wrong = includes.filter(({ to }) => !files.includes(to));
    expect(wrong.map(({ from, to }) => `${from} includes ${to}`)).toEqual([]);
  });

  it('point one way', () => {
    const place = (file: string) => ORDER.indexOf(folderOf(file));
    const wrong = includes.filter(({ from, to }) => place(to) > place(from));
    expect(wrong.map(({ from, to }) => `${from} includes ${to}`)).toEqual([]);
  });

  it('go in no circle', () => {
    expect(circles()).toEqual([]);
  });
});
