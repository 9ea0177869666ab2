// README and docs -> what TypeScript says about their programs and fragments in a user's project.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { docFragments, docPrograms, importsOf } from './doc-programs.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** As `tsc --init` writes them. */
const STRICT =
  '--noEmit --target es2022 --moduleDetection force --strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes'.split(
    ' ',
  );
/** Packages that fragments mention, and that are too large to install here, or have no types. */
const UNTYPED = ['electron', 'express', 'fastify'];

/** Writes every block into the project, makes the packages that they import present, and returns the errors. */
export function compilePages(folder, provide, compiler) {
  const pages = new Map([...docPrograms(), ...docFragments()]);
  provide(importsOf([...pages.values()]).filter((name) => !['onpolicy', ...UNTYPED].includes(name)));
  const names = [...pages].map(([page, program]) => {
    const name = `${page.replaceAll(/[/:]/g, '_')}.ts`;
    fs.writeFileSync(path.join(folder, name), program);
    return name;
  });
  fs.copyFileSync(path.join(root, 'scripts', 'docs', 'doc-names.ts'), path.join(folder, 'names.ts'));
  const untyped = UNTYPED.map((name) => `declare module '${name}';\n`).join('');
  fs.writeFileSync(path.join(folder, 'untyped.d.ts'), untyped);
  const options = ['--module', 'nodenext', '--skipLibCheck'];
  return compile(folder, options, ['names.ts', 'untyped.d.ts', ...names], compiler);
}

/** Returns the output of strict TypeScript for files of a project. `compiler`: path of a `tsc` other than the project's. */
export function compile(folder, options, files, compiler = 'node_modules/typescript/bin/tsc') {
  const words = [path.resolve(folder, compiler), ...STRICT, ...options, ...files];
  return spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' }).stdout;
}
