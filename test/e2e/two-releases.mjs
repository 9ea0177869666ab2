// 'ours' or 'theirs', the one that opens first, or 'thread', in which theirs opens after ours; a model; this library's folder; the release's folder -> what each says, as JSON.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const [first, model, library, others] = process.argv.slice(2);
const outcome = (work) =>
  work().catch((error) => ({ code: error.code ?? null, message: String(error.message) }));

async function ours() {
  const { createRuntime } = await import(pathToFileURL(path.join(library, 'dist/index.js')).href);
  const runtime = await createRuntime({ model, gpu: false, threads: 2, contextSize: 256 });
  const { choices } = await runtime.createCompletion({
    messages: [{ role: 'user', content: 'why' }],
    chat_template: '{{ messages[0].content }}',
    ...{ max_tokens: 4, temperature: 0, ignore_eos: true, return_token_ids: true },
  });
  return { tokens: choices[0].token_ids, version: runtime.stats().engine.version };
}

async function theirs() {
  const entry = createRequire(path.join(others, 'index.js')).resolve('node-llama-cpp');
  const { getLlama } = await import(pathToFileURL(entry).href);
  const logs = [];
  const llama = await getLlama({ gpu: false, build: 'never', logger: (_, text) => logs.push(text) });
  const loaded = await llama.loadModel({ modelPath: model });
  const tokens = loaded.tokenize('why').length;
  await llama.dispose(); // its addon ends the process if its thread ends before
  return { tokens };
}

/** Theirs in a thread of its own, which does not know of ours. */
async function inThread() {
  const worker = new Worker(new URL(import.meta.url), { argv: ['theirs', ...process.argv.slice(3)] });
  const [[result]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
  return result;
}

const ORDERS = { ours: [ours, theirs], theirs: [theirs, ours], thread: [ours, inThread, ours] };
if (isMainThread) {
  const results = [];
  for (const work of ORDERS[first]) results.push(await outcome(work));
  process.stdout.write(`${JSON.stringify(results)}\n`);
  process.exit();
} else {
  parentPort.postMessage(await outcome(theirs));
  parentPort.close();
}
