// The lines of docs/packaging.md, each in a bundle that must answer; and without the line, whose bundle must say what is missing.
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './project.mjs';

const PROGRAM = `import { createRuntime } from 'onpolicy';
const runtime = await createRuntime({ threads: 1, contextSize: 256 });
const messages = [{ role: 'user', content: 'What is the capital of Peru?' }];
console.log((await runtime.createCompletion({ messages, temperature: 0 })).choices[0].message.content);
await runtime.close();
`;
const WEBPACK =
  "mode: 'production', entry: './app.mjs', output: { path: import.meta.dirname + '/out', filename: 'webpack.mjs'";

/** Bundles and runs the program with each bundler. */
export async function bundlers(project) {
  project.install('esbuild', 'rollup', 'vite', 'webpack', 'webpack-cli');
  project.write('app.mjs', PROGRAM);
  const lines = bundlerLines();
  const [esbuild] = lines.get('esbuild');
  const [rollup] = lines.get('rollup');
  const vite = lines.get('vite').find((line) => line.startsWith('build:'));
  project.write('rollup.config.mjs', `export default { input: 'app.mjs', ${rollup} };\n`);
  project.write('vite.config.mjs', 'export default {};\n');
  project.write(
    'vite-plain.config.mjs',
    `export default { ${vite.replace('rollupOptions: {', "target: 'node20', minify: false, outDir: 'out-vite', lib: { entry: 'app.mjs', formats: ['es'], fileName: 'vite' }, rollupOptions: {")} };\n`,
  );
  const webpack = lines.get('webpack').join(', ').replace('output: {', `${WEBPACK},`);
  project.write('webpack.config.mjs', `export default { ${webpack} };\n`);
  await bundle(project, 'esbuild', esbuild.split(' '), ['--outfile=out/esbuild.mjs'], 'out/esbuild.mjs');
  await bundle(project, 'rollup', ['rollup', '-c'], ['--file', 'out/rollup.mjs'], 'out/rollup.mjs');
  await bundle(
    project,
    'vite --ssr',
    ['vite', 'build', '--ssr', 'app.mjs'],
    ['--outDir', 'out-ssr'],
    'out-ssr/app.js',
  );
  await bundle(project, 'vite', ['vite', 'build'], ['-c', 'vite-plain.config.mjs'], 'out-vite/vite.js');
  await bundle(project, 'webpack', ['webpack', '--config', 'webpack.config.mjs'], [], 'out/webpack.mjs');

  const without = esbuild.split(' ').filter((word) => !word.startsWith('--external'));
  const [tool, ...words] = [...without, '--outfile=out/without.mjs', '--external:@node-llama-cpp/*'];
  await project.command(tool, ...words);
  const { code, stderr } = await project.node('out/without.mjs');
  const [, message] = [...page().matchAll(/^\| esbuild \| `([^`]+)`/gm)].at(-1);
  project.check(
    'without its line esbuild fails as docs/packaging.md says',
    code !== 0 && stderr.includes(message),
    stderr,
  );
}

async function bundle(project, name, [tool, ...words], output, file) {
  const made = await project.command(tool, ...words, ...output);
  if (made.code !== 0) return project.check(name, false, `${made.stdout}${made.stderr}`);
  const { code, stdout, stderr } = await project.node(file);
  project.check(
    name,
    code === 0 && stdout === 'The capital of Peru is Lima.\n',
    `${code}\n${stdout}${stderr}`,
  );
}

/** Bundler -> the code in its row. */
function bundlerLines() {
  const rows = page().matchAll(/^\| ([\w.-]+) \| (.+) \|$/gm);
  return new Map(
    Array.from(rows, ([, name, cell]) => [
      name,
      [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code),
    ]).toReversed(),
  );
}

function page() {
  const page = fs.readFileSync(path.join(ROOT, 'docs', 'packaging.md'), 'utf8');
  return page.split(/^## /m).find((part) => part.startsWith('Bundlers'));
}
