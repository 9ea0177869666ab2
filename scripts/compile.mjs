// src/**/*.ts -> dist/**/*.js with source maps, and the files of the report page as they are. Starts from an empty folder, so nothing
// stale is left to be packed. `npm run check` is what checks types.
// --types: types too, which users of the package need.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const src = path.join(root, 'src');
const dist = path.join(root, 'dist');
const isPage = (file) => file.startsWith(path.join('report', 'page'));

fs.rmSync(dist, { recursive: true, force: true });
const modules = fs
  .readdirSync(src, { recursive: true })
  .filter((file) => file.endsWith('.ts') && !isPage(file));
const bundle = await rolldown({
  input: Object.fromEntries(modules.map((file) => [file.slice(0, -'.ts'.length), path.join(src, file)])),
  // Rolldown's own helpers for newer syntax are not packages of ours: they are put beside the modules.
  external: (id) => !/^(\.|\/|[A-Z]:|\0|@oxc-project\/runtime)/.test(id),
  platform: 'node',
  transform: { target: 'es2022' },
  treeshake: false,
});
await bundle.write({ dir: dist, preserveModules: true, preserveModulesRoot: src, sourcemap: true });
await bundle.close();
fs.cpSync(path.join(src, 'report/page'), path.join(dist, 'report/page'), {
  recursive: true,
  filter: (file) => !file.endsWith('tsconfig.json'),
});
if (process.argv.includes('--types')) {
  const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', 'tsconfig.build.json', '--noCheck'];
  process.exitCode =
    spawnSync(process.execPath, [compiler, ...options], { cwd: root, stdio: 'inherit' }).status ?? 1;
}
