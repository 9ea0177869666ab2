// dist/models/download.js -> the same with node-llama-cpp's downloader inside, for packing, and the licences of what it holds beside it.
// node-llama-cpp itself would bring a user hundreds of megabytes of engines that most machines cannot use.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const packages = path.join(root, 'node_modules') + path.sep;
const file = path.join(root, 'dist', 'models', 'download.js');

const bundle = await rolldown({
  input: path.join(packages, 'node-llama-cpp', 'dist', 'utils', 'resolveModelFile.js'),
  platform: 'node',
  external: ['@reflink/reflink'], // copies local files; a download has none
});
const { output } = await bundle.write({ file, format: 'esm', codeSplitting: false });
await bundle.close();
fs.writeFileSync(file.replace(/js$/, 'LICENSES.txt'), licences(output[0].moduleIds));
for (const stale of ['d.ts', 'js.map']) fs.rmSync(file.replace(/js$/, stale), { force: true });

/** The licence of every package that a module comes from. */
function licences(modules) {
  const folders = new Set(
    modules
      .filter((id) => id.startsWith(packages))
      .map((id) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)[0]),
  );
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const text = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version} (${license})\n\n${text ? fs.readFileSync(path.join(folder, text), 'utf8').trim() : ''}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
