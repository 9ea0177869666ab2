/** The checkout's settings of npm: no warnings, and no script of a package that downloads. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string) => JSON.parse(fs.readFileSync(`${root}${name}`, 'utf8'));

it('denies every package its scripts of installation', () => {
  const packages: [string, { hasInstallScript?: boolean }][] = Object.entries(
    read('package-lock.json').packages,
  );
  const names = packages
    .filter(([path, { hasInstallScript }]) => path !== '' && hasInstallScript)
    .map(([path]) => path);
  expect(names.map((path) => path.replace(/^.*node_modules\//, ''))).toEqual(
    Object.keys(read('package.json').allowScripts),
  );
  expect(new Set(Object.values(read('package.json').allowScripts))).toEqual(new Set([false]));
});

it('has settings that npm knows', () => {
  const { status, stderr } = spawnSync('npm', ['prefix'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  expect(status).toBe(0);
  expect(stderr).not.toContain('Unknown project config');
});
