// Settings -> time of a training step in process and through a client and a server in the same process, and whether both give the same bits.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { connect, createRuntime, serve } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { model, threads, rounds, answers = 8, tokens = 128 } = settingsOfProcess();
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-'));
const runtime = await createRuntime({ gpu: false, threads, home });
const server = await serve(runtime);
const client = connect({ baseUrl: server.url });
const data = Array.from({ length: answers }, (_, answer) => {
  const ids = Array.from({ length: tokens + 1 }, (_, i) => 300 + ((i * 31 + answer * 57) % 700));
  return {
    model_input: { chunks: [{ tokens: ids.slice(0, -1) }] },
    loss_fn_inputs: {
      target_tokens: ids.slice(1),
      logprobs: ids.slice(1).map((id) => -Math.log(2 + (id % 13))),
      advantages: ids.slice(1).map(() => (answer % 2 ? 1 : -1)),
    },
  };
});

/** One step: the log-probabilities of all targets before it. */
async function step(service, id, sequence) {
  const call = (operation, request, place) =>
    service.trainingRuns.call(id, operation, { ...request, sequence: place });
  const [{ result }] = await Promise.all([
    call('forward_backward', { data, loss_fn: 'importance_sampling' }, sequence + 1),
    call('optim_step', { adam_params: { learning_rate: 1e-4 } }, sequence + 2),
  ]);
  return result.loss_fn_outputs;
}

/** Returns the results of a few steps of a new run. */
async function outputsOf(service) {
  const { id } = await service.trainingRuns.create({ model, seed: 1 });
  const outputs = [];
  for (let i = 0; i < 3; i++) outputs.push(await step(service, id, 2 * i));
  await service.trainingRuns.delete(id);
  return JSON.stringify(outputs);
}

const isSame = (await outputsOf(runtime)) === (await outputsOf(client));
const { id } = await runtime.trainingRuns.create({ model, seed: 1 });
const samples = { directMs: [], remoteMs: [] };
for (let round = -2; round < rounds; round++) {
  for (const [i, [name, service]] of Object.entries({ directMs: runtime, remoteMs: client }).entries()) {
    const start = performance.now();
    await step(service, id, 2 * (2 * (round + 2) + i));
    if (round >= 0) samples[name].push(performance.now() - start);
  }
}
await client.close();
await server.close();
await runtime.close();
fs.rmSync(home, { recursive: true });
report({ ...samples, isSame, answers, tokens });
