/** `onpolicy init`: the files of each template, what it refuses, and its question in a terminal. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { run } from '../../../src/apps/cli/run.ts';
import { command } from './terminal.ts';

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-init-'));
afterAll(() => fs.rmSync(work, { recursive: true }));

const EXAMPLES = path.resolve(import.meta.dirname, '../../../examples');
const read = (...names: string[]) => fs.readFileSync(path.join(...names), 'utf8');
let made = 0;
const newFolder = () => path.join(work, `project-${made++}`);
const filesOf = (folder: string) =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)).replaceAll('\\', '/'))
    .sort();

/** Answers the question of a terminal with the lines of `input`. */
async function asked(folder: string, input: string) {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const terminal = {
    input: Object.assign(Readable.from([Buffer.from(input)]), { isTTY: true }),
    output,
    errors,
  };
  const exitCode = await run(['init', folder], terminal);
  return { exitCode, output: String(output.read() ?? ''), errors: String(errors.read() ?? '') };
}

describe('onpolicy init', () => {
  it.each(['script', 'server'])(
    'writes a project with the %s of the examples, and says how to go on',
    async (name) => {
      const folder = newFolder();
      const { exitCode, output, errors } = await command(['init', folder, '--template', name]);
      expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: '' });
      const next = [`cd ${path.relative('.', folder)}`, 'npm install', 'npm start'];
      expect(output).toBe(`3 files in ${folder}. Next:\n\n${next.map((line) => `  ${line}\n`).join('')}`);
      expect(filesOf(folder)).toEqual(['package.json', 'src/main.ts', 'tsconfig.json']);
      expect(read(folder, 'src/main.ts')).toBe(read(EXAMPLES, 'typescript', `${name}.ts`));
      const { dependencies, devDependencies } = JSON.parse(read(folder, 'package.json'));
      expect(dependencies).toEqual({ onpolicy: `^${manifest.version}` });
      const { typescript, '@types/node': node } = manifest.devDependencies;
      expect(devDependencies).toEqual({ typescript, '@types/node': node });
    },
  );

  it('writes the Electron app', async () => {
    const folder = newFolder();
    const { exitCode, output } = await command(['init', folder, '--template', 'electron', '--json']);
    expect(exitCode).toBe(0);
    const { files, ...rest } = JSON.parse(output);
    expect(rest).toMatchObject({ folder, template: 'electron' });
    expect(files.toSorted()).toEqual(filesOf(folder));
    expect(files).toEqual(expect.arrayContaining(['package.json', 'src/main.mjs', 'src/page/index.html']));
    for (const file of files.filter((name: string) => name !== 'package.json'))
      expect(read(folder, file), file).toBe(read(EXAMPLES, 'electron', file));
    const { devDependencies } = JSON.parse(read(folder, 'package.json'));
    const { typescript, '@types/node': node } = manifest.devDependencies;
    expect(devDependencies).toMatchObject({ typescript, '@types/node': node });
  });

  it('replaces nothing: names all files that are there, and writes none', async () => {
    const folder = newFolder();
    fs.mkdirSync(path.join(folder, 'src'), { recursive: true });
    for (const name of ['package.json', 'src/main.ts']) fs.writeFileSync(path.join(folder, name), 'mine');
    const { exitCode, errors } = await command(['init', folder, '--template', 'server']);
    expect(exitCode).toBe(2);
    expect(errors).toContain(`${folder} already has package.json, src/main.ts; choose another folder`);
    expect(filesOf(folder)).toEqual(['package.json', 'src/main.ts']);
    expect(read(folder, 'package.json')).toBe('mine');
  });

  it.each([
    [['--template', 'react'], /--template: expected script, server, electron, got "react"/],
    [['--template', 'constructor'], /--template: expected script, server, electron, got "constructor"/],
    [[], /--template: expected script, server, electron;/],
  ])('refuses %j where nobody can be asked', async (words, message) => {
    const folder = newFolder();
    const { exitCode, errors } = await command(['init', folder, ...words]);
    expect(exitCode).toBe(2);
    expect(errors).toMatch(message);
    expect(fs.existsSync(folder)).toBe(false);
  });

  it('asks in a terminal, where it describes the templates', async () => {
    const folder = newFolder();
    const { exitCode, errors } = await asked(folder, 'server\n');
    expect(exitCode).toBe(0);
    for (const name of ['script', 'server', 'electron'])
      expect(errors).toMatch(new RegExp(`^${name} +\\S`, 'm'));
    expect(read(folder, 'src/main.ts')).toBe(read(EXAMPLES, 'typescript/server.ts'));
  });

  it('ends without files when the question is not answered', async () => {
    const folder = newFolder();
    expect(await asked(folder, '')).toMatchObject({
      exitCode: 1,
      errors: expect.stringContaining('no template'),
    });
    expect(fs.existsSync(folder)).toBe(false);
  });
});
