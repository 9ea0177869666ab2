// The main jobs on the embedded model -> one line of JSON with what can be compared between platforms. Runs in a folder that has the
// packed library, and keeps its store in a folder whose name has blanks and letters of several scripts. With the word
// `pictures` it asks about one, too; with `answers` it ends behind the first answers.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { createRuntime } from 'onpolicy';

const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' }, city: { type: 'string' } },
  required: ['name', 'age', 'city'],
  additionalProperties: false,
};
/** Longer than Windows takes without a prefix, with blanks and letters of several scripts. */
const home = path.resolve('a häus 家', ...Array.from({ length: 5 }, (_, i) => `${i} ${'lang '.repeat(10)}ö`));
const user = (content) => [{ role: 'user', content }];

// The model lies in that folder as well.
fs.mkdirSync(home, { recursive: true });
const file = path.join(home, 'möd el.gguf');
fs.copyFileSync(path.join('node_modules', 'onpolicy', 'models', 'onpolicy-tiny.gguf'), file);
const runtime = await createRuntime({ home, model: file });

const answers = [];
for (const question of ['What is the capital of Peru?', 'What is 45 - 5?', 'What color is snow?']) {
  const answer = await runtime.createCompletion({ messages: user(question), temperature: 0, logprobs: true });
  const { message, logprobs } = answer.choices[0];
  answers.push({ text: message.content, logprobs: logprobs.content.map(({ logprob }) => logprob) });
}
const [{ kernels }] = runtime.stats().kernels;
const host = `${process.platform}-${process.arch}`;
if (process.argv.includes('answers')) {
  await runtime.close();
  fs.writeFileSync('smoke.json', JSON.stringify({ host, kernels, answers }));
  process.exit();
}

let streamed = '';
const stream = await runtime.createCompletion({
  messages: user('What is the capital of Japan?'),
  temperature: 0,
  stream: true,
});
for await (const { choices } of stream) streamed += choices[0]?.delta.content ?? '';

const extracted = await runtime.createCompletion({
  messages: user('Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.'),
  response_format: { type: 'json_schema', json_schema: { name: 'person', schema: SCHEMA } },
  temperature: 0,
});

const seen = process.argv.includes('pictures') ? await aboutPicture() : undefined;

const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });
const messages = user('Tell me a wolf story.');
const sampled = {
  model: model.id,
  messages,
  n: 2,
  seed: 1,
  max_tokens: 8,
  logprobs: true,
  return_token_ids: true,
};
const { choices } = await runtime.createCompletion(sampled);
const trajectories = choices.map((choice, i) => ({ messages_and_choices: [...messages, choice], reward: i }));
const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
const { metrics } = await job.done;
await runtime.close();

const again = await createRuntime({ home });
const { data } = await again.models.list();
await again.close();

// A program that lies elsewhere: on Windows the folder of temporary files is on another drive than this one.
const elsewhere = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy smoke ')), 'program.mjs');
fs.writeFileSync(
  elsewhere,
  `import { createRuntime } from ${JSON.stringify(import.meta.resolve('onpolicy'))};
   const runtime = await createRuntime();
   export const { data } = await runtime.models.list();
   await runtime.close();`,
);
const other = await import(pathToFileURL(elsewhere).href);

const workerFile = path.resolve('worker.mjs');
fs.writeFileSync(
  workerFile,
  `import { parentPort } from 'node:worker_threads';
   import { createRuntime } from 'onpolicy';
   const runtime = await createRuntime();
   const { choices } = await runtime.createCompletion({ messages: ${JSON.stringify(user('What is the capital of Peru?'))}, temperature: 0 });
   await runtime.close();
   parentPort.postMessage(choices[0].message.content);`,
);
const worker = new Worker(pathToFileURL(workerFile));
const inWorker = await new Promise((resolve, reject) =>
  worker.once('message', resolve).once('error', reject),
);

fs.writeFileSync(
  'smoke.json',
  JSON.stringify({
    host,
    kernels,
    answers,
    streamed,
    seen,
    extracted: JSON.parse(extracted.choices[0].message.content),
    isTrained: Number.isFinite(metrics['train/loss'] ?? Object.values(metrics)[0]),
    models: data.length,
    isElsewhere: process.platform !== 'win32' || path.parse(elsewhere).root !== path.parse(home).root,
    modelsElsewhere: other.data.length,
    inWorker,
  }),
);

async function aboutPicture() {
  const folder = path.join(home, 'ein bïld');
  // Under wine cpSync of Node 22.23 does not copy all of it to such a path.
  await fs.promises.cp(path.join('node_modules', 'onpolicy', 'models', 'seeing'), folder, {
    recursive: true,
  });
  const eyes = await createRuntime({ home, model: path.join(folder, 'onpolicy-seeing.gguf') });
  const data = fs.readFileSync(path.join(folder, 'pictures', 'three.png'));
  const { choices } = await eyes.createCompletion({
    messages: user([
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data.toString('base64')}` } },
      { type: 'text', text: 'What is in the picture?' },
    ]),
    temperature: 0,
  });
  await eyes.close();
  return choices[0].message.content;
}
