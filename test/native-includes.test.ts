/** Includes in native/ point one way, between rooms and between the folders of a room; one room knows the insides of the engine. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const NATIVE = fileURLToPath(new URL('../native/', import.meta.url));

/** The rooms of native, from leaves to roots. */
const ORDER = [
  'base',
  'kernels',
  'sampler',
  'grammar',
  'engine-assumptions',
  'engine',
  'media',
  'trainer',
  'addon',
];

/** Folders of a room, from leaves to roots. An empty name stands for the files directly in the room. */
const PARTS: Record<string, readonly string[]> = {
  kernels: ['lanes', 'matmul', 'attention', ''],
  grammar: ['json', 'regex', 'pushdown', 'mask', 'json-schema', 'notations'],
  'engine-assumptions': ['table', 'pool', 'matmul', 'attention', ''],
  engine: ['drafts', ''],
  media: ['', 'decoder'],
  trainer: ['graphs', 'weights', ''],
};

/**
 * Insides of the engine that its public headers do not promise: private headers, looked-up symbols, tables of functions, names of nodes,
 * their parameters and the numbers of operations.
 */
const INSIDES =
  /<traits\.h>|<ggml[\w-]*-impl\.h>|\bdlsym\b|\bGetProcAddress\b|"_Z\d|(?:->|\.)iface\b|"(?:result_|ffn_moe_)[\w-]*"|\bop_params\b|\bGGML_OP_\w+/g;

/**
 * Files outside `engine-assumptions` that still name them. This list may only shrink. The decoder is compiled with llama.cpp's own sources
 * of one release, whose operations it counts.
 */
const STILL = ['media/decoder/graph-pace.cc'];

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
    .filter((file) => /\.(?:h|cc)$/.test(file) && !/^decoder[\\/](?:build|source)[\\/]/.test(file)) // made by the decoder's build
    .map((file) => `${folder}/${file.replaceAll(path.sep, '/')}`),
);

const includes: Include[] = files.flatMap((from) =>
  [...fs.readFileSync(path.join(NATIVE, from), 'utf8').matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)]
    .map(([, to]) => ({ from, to: to! }))
    .filter(({ to }) => files.includes(to) || to.includes('/')),
);

const roomOf = (file: string) => file.slice(0, file.indexOf('/'));
/** A folder inside another one of a room belongs to the outer one. Its files are checked for circles as all others. */
const partOf = (file: string) => {
  const [, part, inner] = file.split('/');
  return inner === undefined ? '' : part!;
};
const placeOf = (file: string) =>
  ORDER.indexOf(roomOf(file)) * 100 + (PARTS[roomOf(file)] ?? ['']).indexOf(partOf(file));

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
    expect(includes).toContainEqual({ from: 'addon/unwrap.h', to: 'engine/model.h' });
    expect(includes).toContainEqual({ from: 'grammar/regex/pool.h', to: 'grammar/regex/search.h' });
  });

  it('every room and every folder of a room has its place', () => {
    expect([...folders].sort()).toEqual([...ORDER].sort());
    for (const room of ORDER) {
      const parts = new Set(files.filter((file) => roomOf(file) === room).map(partOf));
      expect([...parts].sort()).toEqual([...(PARTS[room] ?? [''])].sort());
    }
  });

  it('name files by their path from native/', () => {
    const wrong = includes.filter(({ to }) => !files.includes(to));
    expect(wrong.map(({ from, to }) => `${from} includes ${to}`)).toEqual([]);
  });

  it('point one way', () => {
    const wrong = includes.filter(({ from, to }) => placeOf(to) > placeOf(from));
    expect(wrong.map(({ from, to }) => `${from} includes ${to}`)).toEqual([]);
  });

  it('and only engine-assumptions names the insides of the engine', () => {
    const named = files
      .filter((file) => roomOf(file) !== 'engine-assumptions' && !STILL.includes(file))
      .flatMap((file) => {
        const text = fs.readFileSync(path.join(NATIVE, file), 'utf8');
        return [...text.matchAll(INSIDES)].map(([name]) => `${file} names ${name}`);
      });
    expect(named).toEqual([]);
  });

  it('go in no circle', () => {
    expect(circles()).toEqual([]);
  });
});
