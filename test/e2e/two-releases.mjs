// 'ours' or 'theirs', the one that opens first; a model; this library's folder; the release's folder -> what each says, as JSON.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

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
  return { tokens: loaded.tokenize('why').length };
}

const order = first === 'ours' ? [ours, theirs] : [theirs, ours];
const results = [];
for (const work of order) results.push(await outcome(work));
process.stdout.write(`${JSON.stringify(results)}\n`);
process.exit();
