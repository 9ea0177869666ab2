/** `onpolicy init`: a template of `examples` -> a folder with a project that runs at once. */
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { ReadStream } from 'node:tty';
import { packageFile, packageVersion } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { command, text, wrongUsage } from './arguments.ts';
import { JSON_FLAG } from './model-arguments.ts';
import { print, printJson, printTable, type Terminal } from './terminal.ts';

type Template = {
  readonly about: string;
  /** Returns the paths of its files in the project, each with the path of its source in `examples`. */
  readonly files: () => Readonly<Record<string, string>>;
};

const TEMPLATES: Readonly<Record<string, Template>> = {
  script: {
    about: 'a story as it is written, and an answer as a typed object',
    files: () => typed('script'),
  },
  server: { about: "a chat page, and a server for clients of OpenAI's API", files: () => typed('server') },
  electron: { about: 'an app with a window, which learns from its user', files: electron },
};
const NAMES = Object.keys(TEMPLATES);

/** Names of folders that a run of the Electron template in a clone leaves. */
const MADE = ['node_modules', 'dist'];

/** Writes the files of a template. It never replaces a file. */
export const init = command({
  name: 'init',
  words: '[folder]',
  about: 'a project to start from: a script, a server or an Electron app',
  options: {
    template: text('T', `${NAMES.join(', ')} (a terminal is asked)`),
    ...JSON_FLAG,
  },
  async run({ options, names }, terminal) {
    const folder = path.resolve(names[0] ?? '.');
    const name = options.template ?? (await ask(terminal));
    const template = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined;
    if (!template)
      throw wrongUsage(
        `--template: expected ${NAMES.join(', ')}, got ${JSON.stringify(name)}`,
        'onpolicy init',
      );
    const files = Object.entries(template.files());
    const taken = files.map(([file]) => file).filter((file) => fs.existsSync(path.join(folder, file)));
    if (taken.length > 0)
      throw wrongUsage(`${folder} already has ${taken.join(', ')}; choose another folder`, 'onpolicy init');
    for (const [file, source] of files) write(path.join(folder, file), examples(source), folder);
    const next = [
      ...(folder === process.cwd() ? [] : [`cd ${path.relative('.', folder)}`]),
      'npm install',
      'npm start',
    ];
    if (options.json)
      return printJson(terminal, { folder, template: name, files: files.map(([file]) => file), next });
    print(terminal, `${files.length} files in ${folder}. Next:\n`);
    for (const line of next) print(terminal, `  ${line}`);
  },
});

/** A program of one file in TypeScript, with the manifest and the settings that all of them share. */
function typed(program: string): Readonly<Record<string, string>> {
  return {
    'package.json': 'typescript/package.json',
    'tsconfig.json': 'typescript/tsconfig.json',
    'src/main.ts': `typescript/${program}.ts`,
  };
}

function electron(): Readonly<Record<string, string>> {
  const from = examples('electron');
  const files = fs
    .readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(from, path.join(parentPath, name)).replaceAll('\\', '/'))
    .filter((file) => !MADE.includes(file.split('/')[0]!) && file !== 'package-lock.json');
  return Object.fromEntries(files.map((file) => [file, `electron/${file}`]));
}

function examples(name: string): string {
  return packageFile(`examples/${name}`);
}

/** Copies a file. A manifest depends on the package that this command is from. */
function write(file: string, source: string, folder: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const content = fs.readFileSync(source, 'utf8');
  const isManifest = path.basename(file) === 'package.json';
  fs.writeFileSync(file, isManifest ? withPackage(content, folder) : content, { flag: 'wx' });
}

function withPackage(content: string, folder: string): string {
  const manifest = JSON.parse(content) as { dependencies: Record<string, string> };
  const archive = installedFrom();
  manifest.dependencies['onpolicy'] =
    archive === null ? `^${packageVersion()}` : `file:${path.relative(folder, archive)}`;
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Returns the archive or folder that npm installed this package from, or null if that was a registry. */
function installedFrom(): string | null {
  const modules = packageFile('..');
  const list = path.join(modules, '.package-lock.json');
  if (!fs.existsSync(list)) return null;
  const { packages } = JSON.parse(fs.readFileSync(list, 'utf8')) as {
    packages: Readonly<Record<string, { readonly resolved?: string }>>;
  };
  const { resolved = '' } = packages['node_modules/onpolicy'] ?? {};
  return resolved.startsWith('file:') ? path.resolve(modules, '..', resolved.slice('file:'.length)) : null;
}

/** Asks for the name of a template. @throws OnpolicyError `INVALID_REQUEST` where nobody can be asked; `ABORTED` without an answer */
async function ask(terminal: Terminal): Promise<string> {
  if ((terminal.input as Partial<ReadStream>).isTTY !== true)
    throw wrongUsage(`--template: expected ${NAMES.join(', ')}`, 'onpolicy init');
  printTable(
    { ...terminal, output: terminal.errors },
    Object.entries(TEMPLATES).map(([name, { about }]) => [name, about]),
  );
  const lines = createInterface({ input: terminal.input, output: terminal.errors, prompt: 'Template: ' });
  lines.prompt();
  for await (const line of lines) return line.trim();
  throw new OnpolicyError('ABORTED', 'no template was chosen');
}
