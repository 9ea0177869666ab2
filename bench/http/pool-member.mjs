// Settings -> a server with one thread, whose address it writes on standard output; it runs until it is killed.
import { createRuntime, serve } from '../../dist/index.js';
import { settingsOfProcess } from '../lib/measure.mjs';

const { model } = settingsOfProcess();
const runtime = await createRuntime({
  models: { sampler: model },
  model: 'sampler',
  gpu: false,
  threads: 1,
  contextSize: 256,
  maxSequences: 8,
});
const server = await serve(runtime);
process.stdout.write(`${server.url}\n`);
