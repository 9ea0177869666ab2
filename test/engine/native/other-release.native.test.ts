/** A package of the engine of another release is installed -> the libraries that are opened, or the line that installs the right ones. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import release from '../../../src/engine/native/release.json' with { type: 'json' };

const root = path.resolve(import.meta.dirname, '../../..');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-other-release-'));
afterAll(() => fs.rmSync(work, { recursive: true }));
const isHere = process.platform === 'linux' && process.arch === 'x64';

/** The error or version from opening the engine in a process that finds a package of this release. */
async function opened(version: string): Promise<string> {
  const folder = path.join(work, version, 'linux-x64');
  fs.mkdirSync(path.join(folder, 'bins', 'linux-x64'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "type": "module", "main": "index.js" }');
  const bins = JSON.stringify({ binsDir: path.join(folder, 'bins'), packageVersion: version });
  fs.writeFileSync(path.join(folder, 'index.js'), `export const getBinsDir = () => (${bins});`);
  const program = `import('./dist/engine/native/index.js').then(({ openLibraries }) => openLibraries(false)).then(() => console.log('opened'), (error) => console.log(error.message))`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--require', path.join(root, 'scripts/engine/other-release.cjs'), '--eval', program],
    { cwd: root, env: { ...process.env, ONPOLICY_ENGINE_PACKAGES: path.dirname(folder) } },
  );
  return stdout.trim();
}

it.runIf(isHere)('a release that the addon does not know is named, with those that it knows', async () => {
  const named = release.installed['linux-x64'];
  expect(await opened('9.9.9')).toBe(
    `no engine for linux-x64 with gpu: false: missing the package @node-llama-cpp/linux-x64 ${Object.keys(release.accepted).join(' or ')} ` +
      `(9.9.9 is there). Install it: npm install @node-llama-cpp/linux-x64@${named}`,
  );
});

it.runIf(isHere)('the libraries of any accepted release are looked for in its package', async () => {
  for (const accepted of Object.keys(release.accepted))
    expect(await opened(accepted)).toBe(
      `no ggml-base library in ${path.join(work, accepted, 'linux-x64/bins/linux-x64')}`,
    );
});
