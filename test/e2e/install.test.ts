/** Packages that npm would install on each platform for an application that uses the library. Needs npm's registry, or its cache. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string): unknown => JSON.parse(fs.readFileSync(path.join(ROOT, name), 'utf8'));
const manifest = read('package.json') as { optionalDependencies: Record<string, string> };

const PLATFORMS: [os: string, cpu: string, libc: string, engine: string | null][] = [
  ['linux', 'x64', 'glibc', 'linux-x64'],
  ['linux', 'arm64', 'glibc', 'linux-arm64'],
  ['linux', 'riscv64', 'glibc', 'linux-riscv64'],
  ['linux', 'x64', 'musl', null],
  ['win32', 'x64', '', 'win-x64'],
  ['win32', 'arm64', '', 'win-arm64'],
  ['darwin', 'x64', '', 'mac-x64'],
  ['darwin', 'arm64', '', 'mac-arm64-metal'],
];

const UNREACHABLE = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT/;

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-install-'));
const library = path.join(work, 'library');
const run = promisify(execFile);

/** The names and versions that npm would add. */
async function resolve(
  app: string,
  options: readonly string[],
  fields: object = {},
): Promise<Map<string, string>> {
  fs.mkdirSync(app);
  fs.writeFileSync(path.join(app, 'package.json'), JSON.stringify({ private: true, ...fields }));
  const { stdout } = await run(
    'npm',
    [
      'install',
      library,
      '--install-links',
      '--dry-run',
      '--json',
      '--ignore-scripts',
      '--prefer-offline',
      ...options,
    ],
    { cwd: app, shell: process.platform === 'win32' },
  );
  const { add } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    add: { name: string; version: string }[];
  };
  return new Map(add.map(({ name, version }) => [name, version]));
}

beforeAll(() => {
  const { devDependencies, scripts, overrides, ...published } = read('package.json') as Record<
    string,
    unknown
  >;
  fs.mkdirSync(library);
  fs.writeFileSync(path.join(library, 'package.json'), JSON.stringify(published));
});
afterAll(() => fs.rmSync(work, { recursive: true, force: true }));

describe.concurrent('an install', () => {
  it.for(PLATFORMS)(
    'on %s %s %s has the engine %s and nothing for a GPU',
    async ([system, cpu, libc, engine], { skip }) => {
      const platform = [`--os=${system}`, `--cpu=${cpu}`, ...(libc ? [`--libc=${libc}`] : [])];
      const added = await resolve(path.join(work, platform.join('')), platform).catch(
        (error: Error) => error,
      );
      if (added instanceof Error) {
        skip(UNREACHABLE.test(added.message), "npm's registry is out of reach");
        throw added;
      }
      expect(added.has('onpolicy')).toBe(true);
      const engines = [...added].filter(([name]) => name.startsWith('@node-llama-cpp/'));
      expect(engines.filter(([name, version]) => version !== manifest.optionalDependencies[name])).toEqual(
        [],
      );
      if (engine === null) expect(engines).toEqual([]);
      else expect(added.has(`@node-llama-cpp/${engine}`)).toBe(true);
      expect(added.has('node-llama-cpp')).toBe(false);
    },
  );
});

it('on x64 has no engine for arm64 with the line of docs/packaging.md', async ({ skip }) => {
  const [, line] = /```json\n(\{ "overrides".*)\n```/.exec(
    fs.readFileSync(path.join(ROOT, 'docs/packaging.md'), 'utf8'),
  )!;
  const platform = ['--os=linux', '--cpu=x64', '--libc=glibc'];
  const added = await resolve(path.join(work, 'without-arm64'), platform, JSON.parse(line!)).catch(
    (error: Error) => error,
  );
  if (added instanceof Error) {
    skip(UNREACHABLE.test(added.message), "npm's registry is out of reach");
    throw added;
  }
  const engines = [...added.keys()].filter((name) => name.startsWith('@node-llama-cpp/'));
  expect(engines).toEqual(['@node-llama-cpp/linux-x64']);
});

it('musl is refused in one sentence', async () => {
  const stub = path.join(work, 'musl.cjs');
  fs.writeFileSync(stub, 'process.report.getReport = () => ({ header: {} });');
  const script = path.join(ROOT, 'scripts', 'build-addon.mjs');
  const refused = run(process.execPath, ['--require', stub, script, '--if-missing']);
  if (process.platform === 'linux')
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^onpolicy: Linux with musl \(Alpine\) is not supported, .*\n$/),
    });
});
