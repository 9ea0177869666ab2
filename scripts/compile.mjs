// src/**/*.ts -> dist/**/*.js with source maps; the report page with one script, and the chat page with the packages that it uses.
// Starts from an empty folder, so nothing stale is left to be packed. `npm run check` is what checks types.
// --types: types too, which users of the package need.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const src = path.join(root, 'src');
const dist = path.join(root, 'dist');
const REPORT = path.join('rl', 'report', 'page');
const CHAT = path.join('serve', 'page');
const isPage = (file) => [REPORT, CHAT].some((folder) => file.startsWith(folder + path.sep));
/** Packages of which the chat page contains a copy. */
const IN_PAGE = ['eventsource-parser', 'highlight.js', 'lowlight', 'marked'];

/**
 * Chunks, each without what an earlier one has: all that some programs import, and the modules named. A program that loads a few files
 * starts three times as fast as with hundreds of them, and worker threads load little. Each module still has its own file, which passes
 * on what its chunk has.
 */
const CHUNKS = [
  { name: 'loss', programs: ['rl/loss-worker'] },
  {
    name: 'graph',
    programs: ['onnx/worker', 'onnx/embedding-worker', 'onnx/vision-worker'],
  },
  {
    name: 'library',
    modules: ['index', 'structured/index', 'serve/http/index'],
  },
  {
    name: 'runtime', // what programs load that open a runtime, at the first call
    modules: ['runtime/runtime', 'rl/public', 'template/index'],
  },
];
/** Folders whose files are in that of their `index`, without a file of their own: the command, and what `GET /openapi.json` loads. */
const WHOLE = ['apps/cli', 'protocol/schemas'];

fs.rmSync(dist, { recursive: true, force: true });
const modules = fs
  .readdirSync(src, { recursive: true })
  .filter((file) => file.endsWith('.ts') && !isPage(file))
  .map((file) => file.slice(0, -'.ts'.length).replaceAll(path.sep, '/'))
  .filter((name) => !WHOLE.includes(path.posix.dirname(name)) || path.posix.basename(name) === 'index');
const bundle = await rolldown({
  input: Object.fromEntries(modules.map((name) => [name, fileOf(name)])),
  // Rolldown's own helpers for newer syntax are not packages of ours: they are put beside the modules.
  external: (id) => !/^(\.|\/|[A-Z]:|\0|@oxc-project\/runtime)/.test(id),
  platform: 'node',
  transform: { target: 'es2022' },
  treeshake: false,
  preserveEntrySignatures: 'allow-extension', // what chunks of single modules need
});
await bundle.write({
  dir: dist,
  sourcemap: true,
  minifyInternalExports: false,
  chunkFileNames: 'chunks/[name].js',
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: CHUNKS.map((chunk, i) => groupOf(chunk, CHUNKS.length - i)),
  },
});
await bundle.close();
for (const folder of [REPORT, CHAT])
  fs.cpSync(path.join(src, folder), path.join(dist, folder), {
    recursive: true,
    filter: (file) => !/(\.ts|\.js|tsconfig\.json)$/.test(file),
  });
await bundlePage(REPORT, { main: path.join(src, REPORT, 'main.js') });
// `chat.js` is a conversation alone, `main.js` the page around it.
await bundlePage(CHAT, { chat: fileOf(path.join(CHAT, 'chat')), main: fileOf(path.join(CHAT, 'main')) });
fs.writeFileSync(path.join(dist, CHAT, 'licences.txt'), IN_PAGE.map(licenceOf).join('\n\n'));
if (process.argv.includes('--types')) {
  const { bundleTypes } = await import('./bundle-types.mjs');
  await bundleTypes(root);
}

/** Writes the scripts of a page, for browsers. */
async function bundlePage(folder, input) {
  const page = await rolldown({
    input,
    platform: 'browser',
    transform: { target: 'es2022' },
    preserveEntrySignatures: 'allow-extension',
  });
  await page.write({ dir: path.join(dist, folder), minify: true, chunkFileNames: '[name]-parts.js' });
  await page.close();
}

function licenceOf(name) {
  const folder = path.join(root, 'node_modules', name);
  const file = fs.readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return `${name}\n\n${fs.readFileSync(path.join(folder, file), 'utf8').trim()}\n`;
}

function groupOf({ name: debugName, programs = [], modules: own = [] }, priority) {
  let members = null;
  const name = (id, graph) => {
    members ??= importedBy([...programs, ...own].map(fileOf), graph, new Set(own.map(fileOf)));
    return members.has(id) ? debugName : null;
  };
  return { debugName, name, priority };
}

/** All that some files import, directly or not, added to what was found. */
function importedBy(files, graph, found) {
  for (const id of files.flatMap((file) => graph.getModuleInfo(file)?.importedIds ?? [])) {
    if (found.has(id)) continue;
    found.add(id);
    importedBy([id], graph, found);
  }
  return found;
}

function fileOf(name) {
  return path.join(src, `${name}.ts`);
}
