/** The file of the engine's releases agrees with package.json, the docs and the installed packages, whose functions are read statically. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
type Packages = Readonly<Record<string, string>>;
type Release = Readonly<{ release: string; accepted: Packages; installed: Packages; onRequest: Packages }>;
type Wanted = readonly [name: string, list: string];
/** Scripts are plain JavaScript: what the test uses of them, typed. */
type Scripts = {
  'release.mjs': {
    readRelease(): Release;
    filesOf(release: Release): [file: string, text: string][];
    namedReleases(release: Release): Packages;
  };
  'exports.mjs': { exportsOf(file: string): string[] };
  'functions.mjs': {
    wantedFunctions(): Wanted[];
    missingFunctions(folder: string, wanted: readonly Wanted[]): Wanted[];
  };
};
const load = async <Name extends keyof Scripts>(name: Name): Promise<Scripts[Name]> =>
  (await import(path.join(root, 'scripts/engine', name))) as Scripts[Name];
const { readRelease, filesOf, namedReleases } = await load('release.mjs');
const { exportsOf } = await load('exports.mjs');
const { wantedFunctions, missingFunctions } = await load('functions.mjs');

const release = readRelease();
const packages = path.join(root, 'node_modules');
const read = (file: string): Record<string, unknown> =>
  JSON.parse(fs.readFileSync(path.join(packages, file), 'utf8')) as Record<string, unknown>;

describe('the file of the engine', () => {
  it.each(filesOf(release))('agrees with %s', (file, text) => {
    expect(fs.readFileSync(file, 'utf8')).toBe(text);
  });

  it('names accepted releases only', () => {
    const names = [release.release, ...Object.values(namedReleases(release))];
    expect(names.filter((name) => !Object.hasOwn(release.accepted, name))).toEqual([]);
  });

  it('has all packages of the installed node-llama-cpp, which is accepted, with its llama.cpp', () => {
    const { version, optionalDependencies } = read('node-llama-cpp/package.json');
    const { tag } = read('node-llama-cpp/llama/llama.cpp.info.json');
    expect(tag).toBe(`v${release.accepted[version as string]}`);
    expect(Object.keys(optionalDependencies as object).toSorted()).toEqual(
      Object.keys(namedReleases(release))
        .map((name) => `@node-llama-cpp/${name}`)
        .toSorted(),
    );
  });

  it('is followed by a change of a release in all of them', () => {
    const later = { ...release, installed: { ...release.installed, 'linux-x64': '9.9.9' } };
    const changed = filesOf(later).filter(([file, text]) => fs.readFileSync(file, 'utf8') !== text);
    expect(changed.map(([file]) => path.relative(root, file))).toEqual([
      'package.json',
      path.join('docs', 'packaging.md'),
    ]);
    expect(changed[0]![1]).toContain('"@node-llama-cpp/linux-x64": "9.9.9"');
  });
});

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('functions of the libraries', () => {
  const entry = createRequire(import.meta.url).resolve('@node-llama-cpp/linux-x64');
  const folder = path.resolve(path.dirname(entry), '../bins/linux-x64');
  const libraries = fs
    .readdirSync(folder)
    .filter((file) => /^lib(ggml|llama|ggml-base|ggml-cpu-x64)\.(v.*)?so$/.test(file));

  it.each(libraries)('of %s are those that nm finds', (library) => {
    const file = path.join(folder, library);
    const lines = execFileSync('nm', ['-D', '--defined-only', file], {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    const names = lines
      .trim()
      .split('\n')
      .map((line) => line.split(' ').at(-1)!.replace(/@.*/, ''));
    expect(exportsOf(file).toSorted()).toEqual(names.toSorted());
  });

  it('include all that the addon looks up', () => {
    const wanted = wantedFunctions();
    const lists = new Set(wanted.map(([, list]) => list));
    expect(lists).toContain('ONPOLICY_LIBRARY_FUNCTIONS');
    expect(lists).toContain('C++');
    expect(lists).toContain('ggml-cpu');
    expect(missingFunctions(folder, wanted)).toEqual([]);
  });

  it('are missed by name', () => {
    const wanted = [
      ['llama_decode', 'A'],
      ['llama_no_such', 'A'],
      ['?no_such@@YAXH@Z', 'C++'],
      ['_Z7no_suchi', 'C++'],
      ['ggml_no_barrier', 'ggml-cpu'],
    ] as const;
    expect(missingFunctions(folder, wanted).map(([name]) => name)).toEqual([
      'llama_no_such',
      '_Z7no_suchi',
      'ggml_no_barrier',
    ]);
  });
});
