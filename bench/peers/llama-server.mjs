// Settings -> tokens per second of llama.cpp's own server: `program` is its binary, `logprobs` asks it for 5 tops a token.
import { spawn } from 'node:child_process';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { librariesFolder } from '../bare/build.mjs';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';
import { sayReady } from '../turns.mjs';

const { program, model, sequences, promptTokens, outputTokens, threads, logprobs } = settingsOfProcess();
const contextSize = Math.ceil((promptTokens + outputTokens) / 256) * 256;

async function freePort() {
  const server = net.createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

async function* streamLines(body) {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of body) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split('\n');
    pending = lines.pop();
    yield* lines;
  }
}

const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const words = ['--model', model, '--host', '127.0.0.1', '--port', port, '--parallel', sequences];
words.push(
  '--ctx-size',
  contextSize * sequences,
  '--threads',
  threads,
  '--threads-batch',
  threads,
  '--no-webui',
);
const libraries = await librariesFolder();
const server = spawn(program, words.map(String), {
  stdio: ['ignore', 'ignore', 'pipe'],
  env: { ...process.env, LD_LIBRARY_PATH: `${libraries}:${process.env.LD_LIBRARY_PATH ?? ''}` },
});
let log = '';
server.stderr.on('data', (text) => {
  log = (log + text).slice(-2000);
});
process.on('exit', () => server.kill('SIGKILL'));
server.on('exit', (code) => {
  process.stderr.write(`${log}\nllama-server ended with ${code}\n`);
  process.exit(1);
});
for (let ready = false; !ready; await sleep(100))
  ready = await fetch(`${url}/health`).then(
    (response) => response.ok,
    () => false,
  );

const clock = new TokenClock(sequences, sayReady);

async function generate(index) {
  const response = await fetch(`${url}/completion`, {
    method: 'POST',
    body: JSON.stringify({
      prompt: wordPrompt(promptTokens, index),
      n_predict: outputTokens,
      ignore_eos: true,
      temperature: 0.8,
      top_k: 40,
      top_p: 0.95,
      min_p: 0.05,
      repeat_penalty: 1.1,
      frequency_penalty: 0.1,
      seed: 1 + index,
      n_probs: logprobs ? 5 : 0,
      stream: true,
    }),
  });
  for await (const line of streamLines(response.body))
    if (line.startsWith('data: {'))
      for (const _token of JSON.parse(line.slice(6)).tokens ?? []) clock.tick(index);
}

await Promise.all(Array.from({ length: sequences }, (_, index) => generate(index)));
server.removeAllListeners('exit');
report({ timesMs: clock.timesMs });
