// Settings -> the client of this library against llama.cpp's own server on the embedded model: are answers as in process?
import { spawn } from 'node:child_process';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect, createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../measure.mjs';

const { program } = settingsOfProcess();
const model = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const QUESTIONS = ['What is the capital of Peru?', 'What color is snow?', 'Translate to French: house'];

async function freePort() {
  const server = net.createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

const port = await freePort();
const server = spawn(program, ['--model', model, '--host', '127.0.0.1', '--port', String(port), '--jinja'], {
  stdio: 'ignore',
});
process.on('exit', () => server.kill('SIGKILL'));
const baseUrl = `http://127.0.0.1:${port}`;
for (let ready = false; !ready; await sleep(100))
  ready = await fetch(`${baseUrl}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

const remote = connect({ baseUrl });
const local = await createRuntime({ gpu: false, threads: 1 });
let equal = 0;
for (const content of QUESTIONS) {
  const request = { messages: [{ role: 'user', content }], temperature: 0, max_tokens: 32 };
  const expected = (await local.createCompletion(request)).choices[0].message.content;
  const whole = (await remote.createCompletion(request)).choices[0].message.content;
  let streamed = '';
  for await (const chunk of await remote.createCompletion({ ...request, stream: true }))
    streamed += chunk.choices[0]?.delta.content ?? '';
  if (whole === expected && streamed === expected) equal += 1;
}
let refused = false; // it has no models to train, and the client says so
await remote.models.list().catch(({ code }) => {
  refused = code === 'UNSUPPORTED';
});
await local.close();
await remote.close();
report({ questions: QUESTIONS.length, equal, refused });
