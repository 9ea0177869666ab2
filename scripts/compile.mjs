// src/*.ts -> dist/*.js with source maps, and the files of the report page as they are. Starts from an empty folder, so nothing stale
// is left to be packed. `npm run check` is what checks types: without it this takes half as long.
// --types: types too, which users of the package need.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');

fs.rmSync(path.join(root, 'dist'), { recursive: true, force: true });
const options = ['--noCheck', '--declaration', String(process.argv.includes('--types'))];
const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', ...options], {
  cwd: root,
  stdio: 'inherit',
});
fs.cpSync(path.join(root, 'src/report/page'), path.join(root, 'dist/report/page'), {
  recursive: true,
  filter: (file) => !file.endsWith('tsconfig.json'),
});
process.exitCode = status ?? 1;
