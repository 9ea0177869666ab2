/** The docs are true about the repository: files, links and commands they name exist, and none is missing. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { errorCodes, OnpolicyError } from '../src/errors.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => fs.readFileSync(path.join(ROOT, file), 'utf8');
const list = (folder: string): string[] => fs.readdirSync(path.join(ROOT, folder));
const folders = (folder: string): string[] =>
  fs
    .readdirSync(path.join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

/** Old names of pages: one line says where each is now. */
const moved = list('docs')
  .map((file) => `docs/${file}`)
  .filter((file) => file.endsWith('.md') && /^This page is .*\n$/.test(read(file)));
const pages = list('docs')
  .map((file) => `docs/${file}`)
  .filter((file) => file.endsWith('.md') && !moved.includes(file));
const documents = [
  ...list('.').filter((file) => file.endsWith('.md')),
  ...pages,
  ...moved,
  'bench/README.md',
  'models/README.md',
  'examples/README.md',
  ...['native', ...folders('native').map((name) => `native/${name}`)]
    .map((folder) => `${folder}/README.md`)
    .filter((file) => fs.existsSync(path.join(ROOT, file))),
];
const readme = read('README.md');
type Manifest = Record<
  'scripts' | 'dependencies' | 'devDependencies' | 'peerDependencies',
  Record<string, string>
>;
const { scripts, dependencies, devDependencies, peerDependencies } = JSON.parse(
  read('package.json'),
) as Manifest;

describe('the README', () => {
  it('links every document, in six groups', () => {
    const linked = documents.filter(
      (file) => !/^(README|CHANGELOG)\.md$|^native\/.+\//.test(file) && !moved.includes(file),
    );
    expect(linked.filter((file) => !readme.includes(`](${file})`))).toEqual([]);
    const [, docs] = readme.split('\n## Docs\n');
    const groups = docs!.split('\n### ').slice(1);
    expect(groups.map((group) => group.split('\n', 1)[0])).toEqual([
      'Start',
      'Answer',
      'Serve',
      'Train',
      'Deploy',
      'Internals',
    ]);
    for (const page of pages)
      expect(
        groups.filter((group) => group.includes(`](${page})`)),
        page,
      ).toHaveLength(1);
  });

  it('has at most 21 pages beside it', () => {
    expect(pages.length).toBeLessThanOrEqual(21);
    expect(moved.filter((file) => readme.includes(`](${file}`))).toEqual([]);
  });

  it('shows the two commands on its first screen', () => {
    const [screen] = readme.split('\n## ');
    expect(screen!.split('\n').length).toBeLessThanOrEqual(40);
    const [, block] = /```sh\n([\s\S]*?)```/.exec(screen!)!;
    const commands = block!.trim().split('\n');
    expect(commands.map((line) => line.replace(/\s*#.*/, ''))).toEqual(['npm start', 'npm test']);
  });

  it('says what its chart shows', () => {
    const speed = readme.slice(readme.indexOf('## Speed'), readme.indexOf('## What it refuses'));
    const [, chart] = /\]\((\S+)\.svg\)/.exec(speed)!;
    const { results } = JSON.parse(read(`${chart}.json`)) as {
      results: { name: string; median: number; ratios?: Record<string, number> }[];
    };
    const rows = results.filter(({ name }) => name.endsWith(': onpolicy'));
    for (const peer of ['node-llama-cpp', 'bare llama_decode'])
      expect(speed.replaceAll('\n', ' ')).toContain(
        `: ${rows.map(({ ratios }) => ratios![peer]!.toFixed(2)).join(', ')}.`,
      );
    const at = (count: string, engine: string): string =>
      results.find(({ name }) => name === `${count}: ${engine}`)!.median.toFixed(0);
    for (const [row, engine] of Object.entries({
      '**onpolicy**': 'onpolicy',
      'node-llama-cpp': 'node-llama-cpp',
      "llama.cpp's server": 'llama-server',
    })) {
      const [, figures] = new RegExp(
        `^\\| ${row.replaceAll('*', '\\*')} \\|[^|]+\\| ([\\d, ]+) \\|`,
        'm',
      ).exec(readme)!;
      expect(figures, row).toBe(`${at('1 sequence', engine)}, ${at('32 sequences', engine)}`);
    }
  });
});

it('CONTRIBUTING.md lists what is in src', () => {
  const tree = /^src\/.*\n((?: {2}.*\n)+)/m.exec(read('CONTRIBUTING.md'))![1]!;
  const listed = [...tree.matchAll(/^ {2}([^\s/]+)/gm)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual(list('src').toSorted());
});

it('native/README.md lists the folders of native', () => {
  const rows = read('native/README.md')
    .match(/^\| .*`[\w-]+\/`.*\|/gm)!
    .join('\n');
  const listed = [...rows.matchAll(/`([\w-]+)\/`/g)].map(([, name]) => name!);
  const made = ['build', 'include'];
  const present = folders('native').filter((name) => !made.includes(name));
  expect([...new Set(listed)].toSorted()).toEqual(present.toSorted());
});

it('docs/operations.md says when each code comes, and its status', () => {
  const rows = [...read('docs/operations.md').matchAll(/^\| `([A-Z_]+)` \| (\d+) \| .{20,} \| .{5,} \|$/gm)];
  const listed = rows.map(([, code, status]) => `${code} ${status}`);
  expect(listed).toEqual(errorCodes.map((code) => `${code} ${new OnpolicyError(code, '').status}`));
});

it('the package holds what its pages link to', () => {
  const npm = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  const [{ files }] = Object.values(JSON.parse(npm.stdout.slice(npm.stdout.search(/^[[{]/m)))) as [
    { files: { path: string }[] },
  ];
  const packed = files.map((file) => file.path);
  const isPacked = (link: string): boolean =>
    packed.some((file) => file === link || file.startsWith(link.replace(/\/?$/, '/')));
  const pages = packed.filter((file) => file.endsWith('.md'));
  expect(pages).toContain('docs/architecture.md');
  const dead = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)]
      .map(([, link]) => path.posix.join(path.posix.dirname(page), link!))
      .filter((link) => !isPacked(link))
      .map((link) => `${page}: ${link}`),
  );
  expect(dead).toEqual([]);
});

describe('docs/moving.md', () => {
  const [, fromNodeLlamaCpp] = read('docs/moving.md').split(/^## /m);
  const rows = [...fromNodeLlamaCpp!.matchAll(/^\| (`.*?) \| (.*) \|$/gm)];
  /** Names in the code of a cell that are not in a text. */
  const lacks = (cell: string, known: string): string[] =>
    [...cell.matchAll(/`([^`]*)`/g)]
      .flatMap(([, code]) => code!.replaceAll(/'[^']*'/g, '').match(/[A-Za-z_]{3,}/g) ?? [])
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(known));

  it('names what both have', () => {
    expect(rows.length).toBeGreaterThan(25);
    const folder = 'node_modules/node-llama-cpp/dist';
    const there = fs
      .readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.d.ts'))
      .map((file) => read(path.join(folder, file)));
    const here = [
      ...list('docs').filter((file) => /^(request-fields|runtime-options|operations)\.md$/.test(file)),
    ]
      .map((file) => `docs/${file}`)
      .concat(
        'src/protocol/service/service.ts',
        'src/runtime/runtime.ts',
        'src/protocol/chat-completion-response.ts',
        'src/serve/wires/messages/to-chat.ts',
      )
      .map(read);
    expect(rows.flatMap(([, left]) => lacks(left!, there.join('\n')))).toEqual([]);
    expect(rows.flatMap(([, , right]) => lacks(right!, here.join('\n')))).toEqual([]);
  });
});

it('docs/choosing-a-model.md computes the KV cache right', () => {
  const rows = [...read('docs/choosing-a-model.md').matchAll(/^\|.*[a-zA-Z].*((?: \| \d+){4}) \|$/gm)];
  expect(rows.length).toBeGreaterThan(5);
  for (const [line, numbers] of rows) {
    const [layers, kvHeads, headSize, kib] = numbers!.split(' | ').slice(1).map(Number);
    expect((layers! * kvHeads! * 2 * headSize! * 2) / 1024, line).toBe(kib);
  }
});

it('docs/choosing-a-model.md names files that fit, and what works with them', () => {
  const measured = new Map(
    [...read('docs/choosing-a-model.md').matchAll(/^\| `([\w.-]+)` \| (.+) \|$/gm)].map(([, name, cells]) => [
      name!,
      cells!.split(' | '), // answers, turns, drafts, kernels, deterministic, trainable
    ]),
  );
  const page = read('docs/choosing-a-model.md');
  const files = [
    ...page.matchAll(/^\| ([^|]+) \| ((?:(?:-|\S+ \S+, [\d.]+) \| ){3}(?:-|\S+ \S+, [\d.]+)) \|$/gm),
  ];
  const works = [...page.matchAll(/^\| ([^|]+) \| `([\w-]+)` \| (.+) \| [^|]* \|$/gm)];
  expect(works.length).toBeGreaterThan(10);
  expect(files.map(([, family]) => family)).toEqual(works.map(([, family]) => family));
  for (const [row, , architecture, columns] of works) {
    const [, , drafts, , deterministic, trainable] = measured.get(architecture!)!;
    expect(columns, row).toBe([drafts, deterministic, trainable].join(' | '));
  }
  for (const [row, , columns] of files)
    for (const [i, file] of columns!.split(' | ').entries()) {
      if (file === '-') continue;
      const [, size] = /^\S+ (?:I?Q|MXFP)\d\S*, ([\d.]+)$/.exec(file)!;
      expect(Number(size) / 2 ** (i + 3), row).toBeLessThan(0.77); // of 8, 16, 32, 64 GB
    }
});

it('docs/architecture.md names every package', () => {
  const text = read('docs/architecture.md');
  const names = [dependencies, devDependencies, peerDependencies].flatMap((group) => Object.keys(group));
  for (const name of names) expect(text).toContain(`\`${name}\``);
});

describe.each(documents)('%s', (file) => {
  const text = read(file);

  it('links only to files and headings that exist', () => {
    for (const [, link, anchor] of text.matchAll(/\]\(([^)#:\s]*)(?:#([^)]*))?\)/g)) {
      const target = path.resolve(ROOT, link ? path.join(path.dirname(file), link) : file);
      expect(fs.existsSync(target), link).toBe(true);
      expect(moved.includes(file) || !moved.includes(path.relative(ROOT, target)), link).toBe(true);
      if (anchor) expect(anchorsOf(fs.readFileSync(target, 'utf8')), link).toContain(anchor);
    }
  });

  it('names only commands that exist', () => {
    const commands = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name!);
    for (const name of commands) expect(scripts, name).toHaveProperty([name]);
  });

  it('names only source files that exist', () => {
    const files = [
      ...text.matchAll(/`((?:src|native(?!\/(?:build|include)\/)|scripts|test|examples)\/[\w./-]+)`/g),
    ].map(([, name]) => name!);
    for (const name of files) expect(fs.existsSync(path.join(ROOT, name)), name).toBe(true);
  });
});

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
