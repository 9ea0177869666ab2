/** Imports in src point one way: a room imports only rooms before it in this list, through a face. No two exported types have the same name. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));

/** The rooms from the ground to the roof. A room may import the rooms before it. */
const ORDER = [
  'errors.ts',
  'common',
  'protocol',
  'template',
  'engine',
  'structured',
  'sampling',
  'models',
  'answer',
  'onnx',
  'serve',
  'rl',
  'runtime',
  'index.ts',
  'apps',
];

/** Rooms that the core, which is every room before them, never imports. */
const SATELLITES = ['onnx', 'serve', 'rl', 'apps'];

/** The rooms that a room imports, beside the ground. A new arrow needs a reason. */
const ARROWS = [
  'answer -> engine',
  'answer -> models',
  'answer -> sampling',
  'answer -> structured',
  'answer -> template',
  'apps -> rl',
  'models -> engine',
  'models -> sampling',
  'models -> structured',
  'models -> template',
  'onnx -> engine',
  'onnx -> models',
  'onnx -> structured',
  'rl -> answer',
  'rl -> engine',
  'rl -> models',
  'rl -> serve',
  'runtime -> answer',
  'runtime -> engine',
  'runtime -> models',
  'runtime -> onnx',
  'runtime -> rl',
  'runtime -> serve',
  'sampling -> engine',
  'serve -> structured',
  'structured -> engine',
];

/** A room is entered by one of these files, of the room or of a folder in it. `public.ts` holds the names that the package exports. */
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
    expect(imports).toContainEqual({ from: 'runtime/runtime.ts', to: 'models/index.ts' });
    expect(imports).toContainEqual({ from: 'engine/engine.ts', to: 'engine/scheduler.ts' });
  });

  it('every folder and root file has its place', () => {
    expect([...new Set(files.map(roomOf))].sort()).toEqual([...ORDER].sort());
  });

  it('point one way', () => {
    const wrong = between.filter(({ from, to }) => ORDER.indexOf(roomOf(to)) >= ORDER.indexOf(roomOf(from)));
    expect(wrong.map(show)).toEqual([]);
  });

  it('of the core reach no satellite', () => {
    const core = ORDER.slice(0, ORDER.indexOf('onnx'));
    const wrong = between.filter(
      ({ from, to }) => core.includes(roomOf(from)) && SATELLITES.includes(roomOf(to)),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  it('make few arrows between rooms, the ground and the public names aside', () => {
    const isRoom = (file: string) => !['errors.ts', 'common', 'protocol', 'index.ts'].includes(roomOf(file));
    const arrows = between
      .filter(({ from, to }) => isRoom(from) && isRoom(to))
      .map(({ from, to }) => `${roomOf(from)} -> ${roomOf(to)}`);
    expect([...new Set(arrows)].sort()).toEqual(ARROWS);
  });

  it('reach a room through a face', () => {
    const wrong = between.filter(({ to }) => to.includes('/') && !FACES.includes(path.posix.basename(to)));
    expect(wrong.map(show)).toEqual([]);
  });

  it('form no circle, type-only ones included', () => {
    expect(circles(imports)).toEqual([]);
  });

  it('form no circle of folders and files of a room; the program of an isolated process starts a runtime', () => {
    const partOf = (file: string) => file.split('/').slice(0, 2).join('/');
    const within = imports
      .filter(({ from, to }) => roomOf(from) === roomOf(to) && from !== 'runtime/isolation/program.ts')
      .map(({ from, to }) => ({ from: partOf(from), to: partOf(to) }))
      .filter(({ from, to }) => from !== to);
    expect(within.length).toBeGreaterThan(500);
    expect(circles(within)).toEqual([]);
  });

  it('of the loss worker load no lock, which listens for signals', () => {
    const found = ['rl/loss-worker.ts'];
    for (const file of found) found.push(...valueImports(file).filter((to) => !found.includes(to)));
    expect(found).toContain('rl/loss.ts');
    expect(found.filter((file) => textOf(file).includes("'proper-lockfile'"))).toEqual([]);
  });

  it('of the loss worker load only arithmetic: no checks of requests', () => {
    const found = ['rl/loss-worker.ts'];
    for (const file of found) found.push(...valueImports(file).filter((to) => !found.includes(to)));
    expect(found).toContain('rl/preference-loss.ts');
    expect(found.filter((file) => !/^(rl|common)\/|^errors\.ts$/.test(file))).toEqual([]);
  });

  it('see a circle where there is one', () => {
    const ring = ['a', 'b', 'c'].map((from, at) => ({ from, to: 'bca'[at]! }));
    expect(circles([...ring, { from: 'c', to: 'd' }])).toEqual(['a -> b -> c -> a']);
  });
});

it('only src/common renames, writes whole files and flushes them; the command writes the files that it is told to', () => {
  const writes = /\b(?:rename|writeFile|appendFile)(?:Sync)?\(|\.(?:data)?sync\(\)/;
  const fromNode = /from '(?:node:fs|node:fs\/promises)'/;
  const isFree = (file: string) => ['common', 'apps'].includes(roomOf(file));
  const found = files.filter((file) => writes.test(withoutHelpers(file)) && fromNode.test(textOf(file)));
  expect(found.filter((file) => roomOf(file) === 'common')).not.toEqual([]);
  expect(found.filter((file) => !isFree(file))).toEqual([]);
});

/** Returns a file without calls of the `rename` of src/common. */
function withoutHelpers(file: string): string {
  return textOf(file).replaceAll(/(?<![.\w])rename\(/g, '');
}

it('no two exported types of src have the same name', () => {
  const names = files
    .filter((file) => !file.includes('/generated/'))
    .flatMap((file) =>
      [...textOf(file).matchAll(/^export (?:type|interface|class) (\w+)/gm)].map(([, name]) => name!),
    );
  expect(names).toContain('Runtime');
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});
