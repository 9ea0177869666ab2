// src/**/*.ts -> the type declarations in dist: one file for each entry of the package, and chunks of what several of them share, so that
// a type is the same whatever entry it is imported from.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

/** Writes the declarations of all entries in package.json. */
export async function bundleTypes(root) {
  const dist = path.join(root, 'dist');
  const separate = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-types-'));
  try {
    const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const options = ['-p', 'tsconfig.build.json', '--noCheck', '--outDir', separate];
    execFileSync(process.execPath, [compiler, ...options], { cwd: root, stdio: 'inherit' });
    const bundle = await rolldown({
      input: entriesOf(root, separate),
      external: (id) => !/^(\.|\/|[A-Z]:)/.test(id),
      plugins: [dts({ dtsInput: true, tsconfig: false })],
      checks: { pluginTimings: false },
    });
    const { output } = await bundle.generate({ chunkFileNames: 'chunks/[name].js' });
    await bundle.close();
    for (const { fileName, code } of output.filter(({ fileName }) => fileName.endsWith('.d.ts')))
      fs.writeFileSync(path.join(dist, fileName), code);
  } finally {
    fs.rmSync(separate, { recursive: true, force: true });
  }
}

/** Name of each entry's bundle -> its declarations as the compiler writes them. */
function entriesOf(root, separate) {
  const { exports } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const files = Object.values(exports).flatMap(({ types }) => types ?? []);
  return Object.fromEntries(
    files.map((file) => {
      const name = path.posix.relative('dist', file);
      return [name.slice(0, -'.ts'.length), path.join(separate, name)];
    }),
  );
}
