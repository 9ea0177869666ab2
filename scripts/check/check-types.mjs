// The types of `dist` as a user's project meets them: every entry, in strict TypeScript without skipLibCheck, over three ways to resolve
// modules; the programs and fragments of the docs; and what the compiler says about a mistake.
// Words: paths of `tsc` of other releases of TypeScript, in place of the one here.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { docPrograms, importsOf } from '../docs/doc-programs.mjs';
import { compile, compilePages } from '../docs/doc-types.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const modules = path.join(root, 'node_modules');
const compilers = process.argv.slice(2);
if (compilers.length === 0) compilers.push(path.join(modules, 'typescript', 'bin', 'tsc'));

const RESOLUTIONS = [
  ['--module', 'nodenext'],
  ['--module', 'node16'],
  ['--module', 'esnext', '--moduleResolution', 'bundler'],
];
const ENTRIES = ['onpolicy', 'onpolicy/rl', 'onpolicy/template', 'onpolicy/structured', 'onpolicy/http'];
/** A mistake -> what the one error about it has. */
const MISTAKES = [
  ['{ messages, temprature: 1 }', "Did you mean to write 'temperature'?"],
  ["{ messages, temperature: '1' }", "Type 'string' is not assignable to type 'number'."],
];

const app = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-types-'));
try {
  link(root, 'onpolicy');
  link(path.join(modules, '@types'), '@types');
  fs.writeFileSync(path.join(app, 'package.json'), '{ "type": "module" }');
  const entries = ENTRIES.map((name, i) => `import * as entry${i} from '${name}';\nvoid entry${i};\n`).join(
    '',
  );
  fs.writeFileSync(path.join(app, 'entries.ts'), entries);
  const readme = docPrograms().get('README.md');
  fs.writeFileSync(path.join(app, 'readme.ts'), readme);
  provide(importsOf([readme]).filter((name) => name !== 'onpolicy'));
  const mistakes = MISTAKES.map(([request], i) => {
    const name = `mistake${i}.ts`;
    fs.writeFileSync(
      path.join(app, name),
      `import { createCompletion } from 'onpolicy';\nconst messages = [{ role: 'user' as const, content: '' }];\nvoid createCompletion(${request});\n`,
    );
    return name;
  });
  for (const compiler of compilers) {
    for (const resolution of RESOLUTIONS) {
      const options = [...resolution, '--skipLibCheck', 'false'];
      expect('', compile(app, options, ['entries.ts', 'readme.ts'], compiler));
    }
    const errors = compile(app, RESOLUTIONS[0], mistakes, compiler).split(/^(?=\S)/m);
    for (const [i, [, expected]] of MISTAKES.entries()) {
      const [error = '', ...more] = errors.filter((line) => line.startsWith(mistakes[i]));
      if (more.length > 0 || error.split('\n').length > 2 || !error.includes(expected))
        expect(expected, [error, ...more].join(''));
    }
  }
  expect('', compilePages(app, provide, compilers[0]));
  for (const template of ['script', 'server', 'electron']) expect('', compileTemplate(template));
} finally {
  fs.rmSync(app, { recursive: true, force: true });
}

/**
 * Returns what TypeScript says about a project that `onpolicy init` has made. Electron's own types are not here, so parameters of its
 * callbacks have none; `npm run newcomer` checks with them.
 */
function compileTemplate(template) {
  const command = path.join(root, 'dist', 'apps', 'cli', 'index.js');
  const folder = path.join(app, template);
  execFileSync(process.execPath, [command, 'init', folder, '--template', template]);
  const words = [compilers[0], '--noEmit', '-p', folder];
  if (template === 'electron') {
    const electron = path.join(folder, 'node_modules', 'electron');
    fs.mkdirSync(electron, { recursive: true });
    fs.writeFileSync(path.join(electron, 'package.json'), '{ "name": "electron", "types": "index.d.ts" }');
    const names = [
      'app',
      'BrowserWindow',
      'contextBridge',
      'ipcMain',
      'ipcRenderer',
      'powerMonitor',
      'shell',
    ];
    const types = names.map((name) => `export const ${name}: any;\n`).join('');
    fs.writeFileSync(path.join(electron, 'index.d.ts'), types);
    words.push('--noImplicitAny', 'false');
  }
  return spawnSync(process.execPath, words, { encoding: 'utf8' }).stdout;
}

/** Makes packages of this checkout packages of the project. */
function provide(names) {
  for (const name of names)
    if (!fs.existsSync(path.join(app, 'node_modules', name))) link(path.join(modules, name), name);
}

/** Makes a package one of the project's. */
function link(folder, name) {
  const place = path.join(app, 'node_modules', name);
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.symlinkSync(folder, place, 'junction');
}

function expect(wanted, got) {
  if (wanted === got) return;
  console.error(wanted === '' ? got : `expected one error with ${wanted}\n${got}`);
  process.exitCode = 1;
}
