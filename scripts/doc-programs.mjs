// README.md and the pages of docs -> the program of each page: its `js` blocks, one after the other; and their `ts` blocks, which are
// fragments.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/** Pages that have a program -> the program. */
export function docPrograms() {
  const programs = pages().map(([page, text]) => [
    page,
    blocksOf(text, 'js')
      .map(({ code }) => code)
      .join(''),
  ]);
  return new Map(programs.filter(([, program]) => program !== ''));
}

/** `page:line` of each fragment -> the fragment. */
export function docFragments() {
  return new Map(
    pages().flatMap(([page, text]) =>
      blocksOf(text, 'ts').map(({ line, code }) => [`${page}:${line}`, code]),
    ),
  );
}

/** A program of the docs for this machine: a file in place of models of the hub, and another port. */
export function localProgram(program, { model, port }) {
  return program.replaceAll(/'hf:[^']+'/g, `'${model}'`).replaceAll('8080', String(port));
}

/** The packages that programs import. */
export function importsOf(programs) {
  const names = programs.flatMap((program) =>
    [...program.matchAll(/ from '(?!node:|\.)((?:@[^/']+\/)?[^/']+)/g)].map(([, name]) => name),
  );
  return [...new Set(names)];
}

function pages() {
  const names = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
  return ['README.md', ...names.map((name) => `docs/${name}`)].map((page) => [
    page,
    fs.readFileSync(path.join(root, page), 'utf8'),
  ]);
}

function blocksOf(text, language) {
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'));
  return Array.from(blocks, ({ index, 1: code }) => ({
    line: text.slice(0, index).split('\n').length + 1,
    code,
  }));
}
