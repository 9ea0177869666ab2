/** The app in `examples/electron`, packed as its two build tools pack it -> what is in the archive and beside it, and that it runs. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { createPackageWithOptions, extractAll, listPackage } from '@electron/asar';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

const EXAMPLE = path.join(ROOT, 'examples', 'electron');
const STAND_INS = path.join(ROOT, 'test', 'e2e', 'electron');
const HERE = `${process.platform}-${process.arch}`;
const ENGINE = `${{ linux: 'linux', win32: 'win', darwin: 'mac' }[process.platform as string]}-${process.arch}`;
/** Files that the system opens itself. */
const NATIVE = /\.(node|gguf|dylib|dll|so(\.[\d.]+)?)$/;

const require = createRequire(import.meta.url);
type Forge = {
  packagerConfig: { asar: { unpack: string } };
  hooks: {
    packageAfterPrune(
      config: object,
      folder: string,
      electron: string,
      platform: string,
      arch: string,
    ): Promise<void>;
  };
};
const forge = require(path.join(EXAMPLE, 'forge.config.cjs')) as Forge;
const builder = require(path.join(EXAMPLE, 'electron-builder.config.cjs')) as {
  files: string[];
  asarUnpack: string[];
};
type Match = (file: string, pattern: string, options: object) => boolean;
const minimatch = createRequire(require.resolve('@electron/asar'))('minimatch') as Match;

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-archive-'));
const app = path.join(work, 'app');
const modules = path.join(app, 'node_modules');
const list = (folder: string): string[] =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();

/** Copies the files that npm would install: the packed library, its dependencies, and engines of this platform and another one. */
beforeAll(() => {
  fs.cpSync(EXAMPLE, app, { recursive: true });
  const library = path.join(modules, 'onpolicy');
  for (const name of ['package.json', 'dist', 'models', 'docs/packaging.md', 'native/README.md'])
    fs.cpSync(path.join(ROOT, name), path.join(library, name), { recursive: true });
  for (const name of [HERE, 'aix-ppc64'])
    for (const addon of ['onpolicy.node', 'grammar.node'])
      fs.cpSync(path.join(ROOT, 'native/build/Release', addon), path.join(library, 'prebuilds', name, addon));
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  Object.keys(dependencies).forEach(addPackage);
  addPackage(`@node-llama-cpp/${ENGINE}`);
  fs.mkdirSync(path.join(modules, '@node-llama-cpp', 'aix-ppc64', 'bins'), { recursive: true });
  fs.writeFileSync(path.join(modules, '@node-llama-cpp', 'aix-ppc64', 'bins', 'llama.dll'), '');
});
afterAll(() => fs.rmSync(work, { recursive: true }));

function addPackage(name: string): void {
  const from = path.join(ROOT, 'node_modules', name);
  if (!fs.existsSync(from) || fs.existsSync(path.join(modules, name))) return;
  fs.cpSync(from, path.join(modules, name), { recursive: true });
  const { dependencies = {} } = JSON.parse(fs.readFileSync(path.join(from, 'package.json'), 'utf8')) as {
    dependencies?: Record<string, string>;
  };
  Object.keys(dependencies).forEach(addPackage);
}

/** The files that electron-builder packs, by the last pattern that says something of each. */
function packedByBuilder(files: readonly string[]): string[] {
  const macros: Readonly<Record<string, string>> = {
    platform: process.platform,
    os: ENGINE.split('-')[0]!,
    arch: process.arch,
  };
  const patterns = builder.files.map((pattern) =>
    pattern.replace(/\$\{(\w+)\}/g, (_, name) => macros[name]!),
  );
  return files.filter((file) =>
    patterns.reduce((isPacked, pattern) => {
      const isMatch = minimatch(file, pattern.replace(/^!/, ''), { dot: true });
      return isMatch ? !pattern.startsWith('!') : isPacked;
    }, false),
  );
}

describe('the packed app', () => {
  let packed: string[];
  const archive = path.join(work, 'packed', 'app.asar');

  beforeAll(async () => {
    packed = packedByBuilder(list(app));
    await forge.hooks.packageAfterPrune({}, app, '', process.platform, process.arch);
    await createPackageWithOptions(app, archive, forge.packagerConfig.asar);
  });

  it('holds no engine, addon or source of other platforms, with either tool', () => {
    const files = list(app);
    expect(packed).toEqual(files);
    expect(files.filter((file) => file.includes('aix-ppc64'))).toEqual([]);
    expect(files.filter((file) => /onpolicy\/(docs|native|scripts)\//.test(file))).toEqual([]);
    for (const file of [
      'src/main.mjs',
      'node_modules/onpolicy/dist/index.js',
      'node_modules/onpolicy/models/onpolicy-tiny.gguf',
      `node_modules/onpolicy/prebuilds/${HERE}/onpolicy.node`,
      `node_modules/onpolicy/prebuilds/${HERE}/grammar.node`,
    ])
      expect(files).toContain(file);
  });

  it('has outside the archive what the system opens, with either tool', () => {
    const outside = list(`${archive}.unpacked`);
    const byBuilder = packed.filter((file) =>
      builder.asarUnpack.some((pattern) => minimatch(file, pattern, { dot: true })),
    );
    expect(outside).toEqual(byBuilder);
    expect(packed.filter((file) => NATIVE.test(file) && !outside.includes(file))).toEqual([]);
    expect(outside.length).toBeLessThan(packed.length / 2);
    expect(listPackage(archive, { isPack: false }).length).toBeGreaterThan(packed.length);
  });

  // Stands in for Electron's reader of archives: a folder in its place, in which native files are no files of use.
  it('answers and trains from the archive', async () => {
    const resources = path.join(work, 'resources');
    const inside = path.join(resources, 'app.asar');
    extractAll(archive, inside);
    fs.cpSync(`${archive}.unpacked`, `${inside}.unpacked`, { recursive: true });
    for (const file of list(inside))
      if (NATIVE.test(file)) fs.writeFileSync(path.join(inside, file), 'in the archive');
    const electron = path.join(resources, 'node_modules', 'electron');
    fs.mkdirSync(electron, { recursive: true });
    fs.copyFileSync(path.join(STAND_INS, 'electron.cjs'), path.join(electron, 'index.js'));
    const env = {
      ...process.env,
      MODEL: path.join(inside, 'node_modules/onpolicy/models/onpolicy-tiny.gguf'),
      USER_DATA: path.join(work, 'data'),
      WINDOW_PROGRAM: path.join(STAND_INS, 'window.mjs'),
    };
    const asked = await runNode([path.join(inside, 'src', 'main.mjs')], { cwd: inside, env });
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(asked.stdout)).toMatchObject({ answer: 'The capital of Peru is Lima.' });
    const program = path.join(inside, 'train.mjs');
    fs.writeFileSync(
      program,
      `import { createRuntime } from 'onpolicy';
       const runtime = await createRuntime({ home: ${JSON.stringify(path.join(work, 'home'))} });
       const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });
       const messages = [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }];
       const job = await runtime.sft({ model_id: model.id, data: [{ messages }] });
       process.stdout.write("step " + (await job.done).step);
       await runtime.close();`,
    );
    const trained = await runNode([program], { cwd: inside });
    expect(trained).toMatchObject({
      code: 0,
      stderr: '',
      stdout: 'step 1',
    });
  });
});
