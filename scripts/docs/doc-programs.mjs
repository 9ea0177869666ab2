// README.md and the pages of docs -> their programs: the `js` blocks of a page, one after the other; and their `ts` blocks, which are
// fragments. A block that imports a name again begins the page's next program.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Programs by their page; the second of a page is `page:2`. */
export function docPrograms() {
  return new Map(
    pages().flatMap(([page, text]) =>
      programsOf(text).map((program, i) => [i === 0 ? page : `${page}:${i + 1}`, program]),
    ),
  );
}

/** `page:line` of each fragment -> the fragment. */
export function docFragments() {
  return new Map(
    pages().flatMap(([page, text]) =>
      blocksOf(text, 'ts').map(({ line, code }) => [`${page}:${line}`, code]),
    ),
  );
}

/** A program of the docs for this machine: files in place of models of the hub, `words` for embeddings and rankings, and another port. */
export function localProgram(program, { model, words, port }) {
  return program
    .replaceAll(/'hf:[^']*(?:Embedding|Reranker)[^']*'/g, `'${words}'`)
    .replaceAll(/'hf:[^']+'/g, `'${model}'`)
    .replaceAll('8080', String(port));
}

/** The packages that programs import. */
export function importsOf(programs) {
  const names = programs.flatMap((program) =>
    [...program.matchAll(/ from '(?!node:|\.)((?:@[^/']+\/)?[^/']+)/g)].map(([, name]) => name),
  );
  return [...new Set(names)];
}

function programsOf(text) {
  const programs = [];
  let imported = new Set();
  for (const { code } of blocksOf(text, 'js')) {
    const names = [...code.matchAll(/^import (.*) from/gm)].flatMap(([, list]) => list.match(/\w+/g));
    if (programs.length === 0 || names.some((name) => imported.has(name))) {
      programs.push('');
      imported = new Set();
    }
    for (const name of names) imported.add(name);
    programs[programs.length - 1] += code;
  }
  return programs;
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
