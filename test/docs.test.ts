/** What the docs say about the repository is true: files, links and commands that they name exist, and none is left out. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => fs.readFileSync(path.join(ROOT, file), 'utf8');
const list = (folder: string): string[] => fs.readdirSync(path.join(ROOT, folder));

const documents = [
  ...list('.').filter((file) => file.endsWith('.md')),
  ...list('docs')
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  'models/README.md',
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
  it('lists every file and folder of src', () => {
    const tree = /^src\/[\s\S]*?^native\//m.exec(readme)?.[0] ?? '';
    const listed = [...tree.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name);
    const present = fs
      .readdirSync(path.join(ROOT, 'src'), { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    expect(listed.toSorted()).toEqual(present.toSorted());
  });

  it('links every document', () => {
    const expected = documents.filter((file) => file !== 'README.md' && file !== 'CHANGELOG.md');
    expect(expected.filter((file) => !readme.includes(`](${file})`))).toEqual([]);
  });

  it('shows the two commands first', () => {
    const [, block] = /```sh\n([\s\S]*?)```/.exec(readme)!;
    const commands = block!.trim().split('\n');
    expect(commands.map((line) => line.replace(/\s*#.*/, ''))).toEqual(['npm start', 'npm test']);
  });
});

it('docs/dependencies.md names every package', () => {
  const text = read('docs/dependencies.md');
  const names = [dependencies, devDependencies, peerDependencies].flatMap((group) => Object.keys(group));
  for (const name of names) expect(text).toContain(`\`${name}\``);
});

describe.each(documents)('%s', (file) => {
  const text = read(file);

  it('links only to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, link]) => link!);
    for (const link of links)
      expect(fs.existsSync(path.resolve(ROOT, path.dirname(file), link)), link).toBe(true);
  });

  it('names only commands that exist', () => {
    const commands = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name!);
    for (const name of commands) expect(scripts, name).toHaveProperty([name]);
  });

  it('names only source files that exist', () => {
    const files = [...text.matchAll(/`((?:src|native|scripts|test|examples)\/[\w./-]+)`/g)].map(
      ([, name]) => name!,
    );
    for (const name of files) expect(fs.existsSync(path.join(ROOT, name)), name).toBe(true);
  });
});
