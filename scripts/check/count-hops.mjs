// Folder of a checkout -> how many files and functions a chat request, the same over the messages API, and a training job run, and how
// many hand-overs: pairs of files that ran of which one imports the other. V8 counts the calls, after a first request of the same kind.
// node scripts/check/count-hops.mjs [--list] [folder]: by default this checkout; `--list` prints the files.
import fs from 'node:fs';
import { Session } from 'node:inspector/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const [folder] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const isListed = process.argv.includes('--list');
const root = path.resolve(folder ?? path.join(path.dirname(fileURLToPath(import.meta.url)), '../..'));
const src = path.join(root, 'src');
/** A file for each module. It has to be as deep below the root as `dist`. */
const out = path.join(root, 'coverage');

await writeModules();
const { createRuntime } = await import(pathToFileURL(path.join(out, 'index.js')));
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hops-'));
const runtime = await createRuntime({ home });
const messages = [{ role: 'user', content: 'What is the capital of Peru?' }];
const chat = () => runtime.createCompletion({ messages, temperature: 0, max_completion_tokens: 8 });
const message = () => runtime.createMessage({ model: runtime.servedModels()[0], messages, max_tokens: 8 });

console.log('| | files | functions | hand-overs |\n|---|---|---|---|');
await count('a chat request', chat);
await count('the same over the messages API', message);
await count('a training job', await trainer());
await runtime.close();
fs.rmSync(home, { recursive: true, force: true });
fs.rmSync(out, { recursive: true, force: true });

async function writeModules() {
  const modules = fs
    .readdirSync(src, { recursive: true })
    .filter((file) => file.endsWith('.ts') && !/report[\\/]page/.test(file));
  const bundle = await rolldown({
    input: Object.fromEntries(modules.map((name) => [name.slice(0, -3), path.join(src, name)])),
    external: (id) => !/^(\.|\/|[A-Z]:|\0|@oxc-project\/runtime)/.test(id),
    platform: 'node',
    transform: { target: 'es2022' },
    treeshake: false,
  });
  await bundle.write({
    dir: out,
    preserveModules: true,
    preserveModulesRoot: src,
    minifyInternalExports: false,
  });
  await bundle.close();
}

/** Registers a model and returns a function that trains it on two scored trajectories. */
async function trainer() {
  const model = await runtime.models.create({ name: 'hops', base_model: runtime.servedModels()[0] });
  const trajectories = await Promise.all(
    [1, 0].map(async (reward) => {
      const { choices } = await runtime.createCompletion({
        messages,
        max_completion_tokens: 8,
        logprobs: true,
        return_token_ids: true,
      });
      return { messages_and_choices: [...messages, choices[0]], reward };
    }),
  );
  return async () => {
    const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
    await job.done;
  };
}

async function count(name, work) {
  await work();
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = new Map();
  for (const { url, functions } of result) {
    if (!url.startsWith(pathToFileURL(out).href)) continue;
    const called = functions.filter(
      ({ functionName, ranges: [all] }) => all.count > 0 && (functionName !== '' || all.startOffset > 0),
    );
    if (called.length > 0) ran.set(fileURLToPath(url), called.length);
  }
  const functions = [...ran.values()].reduce((sum, one) => sum + one, 0);
  const pairs = [...ran.keys()].flatMap((file) => importsOf(file).filter((other) => ran.has(other)));
  console.log(`| ${name} | ${ran.size} | ${functions} | ${pairs.length} |`);
  if (isListed)
    for (const [file, calls] of [...ran].sort()) console.log(`${path.relative(out, file)} ${calls}`);
}

function importsOf(file) {
  const found = fs.readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^;]*?["'](\.[^"']+)["'];/gm);
  return [...new Set([...found].map(([, name]) => path.resolve(path.dirname(file), name)))];
}
