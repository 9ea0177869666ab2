// The blocks of README and docs: as programs that run, and as strict TypeScript.

import fs from 'node:fs';
import path from 'node:path';
import { writeWordVectors } from '../../../examples/lib/word-vectors.mjs';
import { docPrograms, importsOf, localProgram } from '../../docs/doc-programs.mjs';
import { compile, compilePages } from '../../docs/doc-types.mjs';
import { asTested, freePort, ROOT } from './project.mjs';

/** Runs the program of each page. */
export async function pages(project) {
  const programs = docPrograms();
  project.install(...asTested(importsOf([...programs.values()]).filter((name) => name !== 'onpolicy')));
  for (const [page, program] of programs) {
    const words = path.join(project.folder, 'words.gguf');
    writeWordVectors(words, [program]);
    const source = localProgram(program, { model: './downloaded.gguf', words, port: await freePort() });
    for (const [, name] of source.matchAll(/'(\.\/[^']+\.gguf)'/g)) project.copyModel(name);
    const file = project.write(`${path.basename(page, '.md')}.mjs`, source);
    const { code, stdout, stderr } = await project.node(file);
    project.check(page, code === 0 && stderr === '' && stdout !== '', `${code}\n${stdout}${stderr}`);
  }
}

/** Compiles programs and fragments; and the entries with the oldest TypeScript that docs/packaging.md names. */
export async function types(project) {
  const [, least] = /TypeScript (\d+\.\d+) or newer/.exec(
    fs.readFileSync(path.join(ROOT, 'docs', 'packaging.md'), 'utf8'),
  );
  project.install(`least-typescript@npm:typescript@${least}`, ...asTested(['@types/node', 'zod']));
  const entries = ['onpolicy', 'onpolicy/rl', 'onpolicy/template', 'onpolicy/structured', 'onpolicy/http'];
  project.write('entries.ts', entries.map((name, i) => `export * as entry${i} from '${name}';\n`).join(''));
  project.write('readme.ts', docPrograms().get('README.md'));
  const old = compile(
    project.folder,
    ['--module', 'nodenext'],
    ['entries.ts', 'readme.ts'],
    'node_modules/least-typescript/bin/tsc',
  );
  project.check(`TypeScript ${least} compiles the entries and the README's program`, old === '', old);
  project.install(...asTested(['typescript', '@types/node']));
  const errors = compilePages(project.folder, (names) => project.install(...asTested(names)));
  project.check('blocks of README and docs are strict TypeScript', errors === '', errors);
}
