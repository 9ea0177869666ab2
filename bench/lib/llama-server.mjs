// llama.cpp's own server as a program of this process: it listens at a port of its own, and ends with this process.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { librariesFolder } from '../bare/build.mjs';

/**
 * Starts `program` with further `words` of its command line. Its URL, once it answers, and a function that gives its CPU time so far (on Linux).
 * When it ends, so does this process.
 */
export async function startLlamaServer(program, words) {
  const port = await freePort();
  const libraries = await librariesFolder();
  const server = spawn(program, [...words, '--host', '127.0.0.1', '--port', port].map(String), {
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
  const url = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) await sleep(100);
  return { url, cpuMs: () => cpuMsOf(server.pid) };
}

/** User and system time of a process; Linux counts both in hundredths of a second. */
function cpuMsOf(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** The objects of a stream of server-sent events. */
export async function* eventsOf(body) {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of body) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split('\n');
    pending = lines.pop();
    for (const line of lines) if (line.startsWith('data: {')) yield JSON.parse(line.slice(6));
  }
}

async function freePort() {
  const server = net.createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}
