/** Imports in src point one way: a folder imports only folders above it in this list, through their face. Exported types have a name of their own. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));

/** From leaves to roots: folders, and the files of the root. */
const ORDER = [
  'errors.ts',
  'common',
  'writer-lock.ts',
  'tokenizer',
  'template',
  'tool-calls',
  'reasoning',
  'protocol',
  'native',
  'gguf',
  'hub',
  'lora',
  'structured',
  'media',
  'sampling',
  'backends',
  'engine',
  'disk-cache',
  'models',
  'answer',
  'training-run.ts',
  'service.ts',
  'wires',
  'batch',
  'batch-store',
  'checked-service.ts',
  'remote-job.ts',
  'http',
  'rollout',
  'rl',
  'store',
  'training',
  'report',
  'runtime-options.ts',
  'runtime-stats.ts',
  'inspect-model.ts',
  'answering.ts',
  'isolation',
  'runtime.ts',
  'isolated-process.ts',
  'default-runtime.ts',
  'index.ts',
  'cli',
  'demo',
];

/** What other folders may import of a folder: `public.ts` holds the names that the package exports. */
const FACES = ['index.ts', 'public.ts'];

type Import = { readonly from: string; readonly to: string };

function sources(): string[] {
  return fs
    .readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replaceAll(path.sep, '/'));
}

/** Every relative import, type-only and dynamic ones included, and every worker file. */
function importsOf(from: string): Import[] {
  const specifiers = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*'(\.{1,2}\/[^']+\.ts)'/g;
  return [...textOf(from).matchAll(specifiers)].map(([, specifier]) => ({
    from,
    to: path.posix.join(path.posix.dirname(from), specifier!),
  }));
}

function textOf(file: string): string {
  return fs.readFileSync(path.join(SRC, file), 'utf8');
}

/** The files that a file loads: what it imports but types. */
function valueImports(from: string): string[] {
  const statements = /^(?:import|export) (?!type\b)[^;]*? from '(\.{1,2}\/[^']+\.ts)';$/gm;
  return [...textOf(from).matchAll(statements)].map(([, to]) =>
    path.posix.join(path.posix.dirname(from), to!),
  );
}

/** The folder of a file, or the file itself in the root. */
function roomOf(file: string): string {
  return file.split('/')[0]!;
}

function show({ from, to }: Import): string {
  return `${from} imports ${to}`;
}

/** Files that import each other, each list from the first file around to itself. */
function circles(imports: readonly Import[]): string[] {
  const targets = groupBySource(imports);
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (file: string, trail: readonly string[]): void => {
    if (trail.includes(file)) found.push([...trail.slice(trail.indexOf(file)), file].join(' -> '));
    if (done.has(file)) return;
    done.add(file);
    for (const next of targets.get(file) ?? []) visit(next, [...trail, file]);
  };
  for (const file of targets.keys()) visit(file, []);
  return found;
}

function groupBySource(imports: readonly Import[]): Map<string, string[]> {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
  return targets;
}

const files = sources();
const imports = files.flatMap(importsOf);
const between = imports.filter(({ from, to }) => roomOf(from) !== roomOf(to));

describe('imports in src', () => {
  it('are found', () => {
    expect(imports).toContainEqual({ from: 'runtime.ts', to: 'models/index.ts' });
    expect(imports).toContainEqual({ from: 'engine/engine.ts', to: 'engine/scheduler.ts' });
  });

  it('every folder and root file has its place', () => {
    expect([...new Set(files.map(roomOf))].sort()).toEqual([...ORDER].sort());
  });

  it('point one way', () => {
    const wrong = between.filter(({ from, to }) => ORDER.indexOf(roomOf(to)) >= ORDER.indexOf(roomOf(from)));
    expect(wrong.map(show)).toEqual([]);
  });

  it('reach a folder through its face', () => {
    const wrong = between.filter(
      ({ to }) => to.includes('/') && !FACES.includes(to.slice(roomOf(to).length + 1)),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  it('form no circle, type-only ones included', () => {
    expect(circles(imports)).toEqual([]);
  });

  it('of the loss worker load no lock, which listens for signals', () => {
    const found = ['rl/loss-worker.ts'];
    for (const file of found) found.push(...valueImports(file).filter((to) => !found.includes(to)));
    expect(found).toContain('rl/loss.ts');
    expect(found.filter((file) => textOf(file).includes("'proper-lockfile'"))).toEqual([]);
  });

  it('see a circle where there is one', () => {
    const ring = ['a', 'b', 'c'].map((from, at) => ({ from, to: 'bca'[at]! }));
    expect(circles([...ring, { from: 'c', to: 'd' }])).toEqual(['a -> b -> c -> a']);
  });
});

it('no two exported types of src have the same name', () => {
  const names = files
    .filter((file) => !file.includes('/generated/'))
    .flatMap((file) =>
      [...textOf(file).matchAll(/^export (?:type|interface|class) (\w+)/gm)].map(([, name]) => name!),
    );
  expect(names).toContain('Runtime');
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});
