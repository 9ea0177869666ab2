// README.md and the pages of docs -> the program of each page: its `js` blocks, one after the other.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/** Pages that have a program -> the program. */
export function docPrograms() {
  const names = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
  const pages = ['README.md', ...names.map((name) => `docs/${name}`)];
  const programs = pages.map((page) => [page, programOf(fs.readFileSync(path.join(root, page), 'utf8'))]);
  return new Map(programs.filter(([, program]) => program !== ''));
}

function programOf(text) {
  return [...text.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, block]) => block).join('');
}
