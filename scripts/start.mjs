// `npm start`: makes the clone ready without the grammar engine, then builds that beside the demo, which sends its first answers meanwhile.
// The demo waits for it before it shows structured output.
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const script = (name) => path.join(root, 'scripts', name);

const setup = await end(
  spawn(process.execPath, [script('setup.mjs'), '--without-grammar'], { stdio: ['ignore', 2, 2] }),
);
if (setup !== 0) process.exit(setup);
const demo = spawn(process.execPath, [path.join(root, 'dist/apps/demo/index.js'), ...process.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
});
const builder = spawn(process.execPath, [script('build-addon.mjs'), '--if-missing'], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
/** Lines of the compilers, which would stand amid those of the demo. They are shown only if the build fails. */
const lines = [];
for (const stream of [builder.stdout, builder.stderr]) stream.on('data', (chunk) => lines.push(chunk));
try {
  os.setPriority(builder.pid, os.constants.priority.PRIORITY_LOW); // its compilers inherit it
} catch {
  // it has ended already
}
builder.on('close', (code) => {
  if (code !== 0) process.stderr.write(Buffer.concat(lines));
  if (demo.connected) demo.send('built');
});
process.exitCode = await end(demo);

/** Resolves with the exit code. A program that a signal ended has 1. */
function end(child) {
  return new Promise((resolve, reject) => child.on('error', reject).on('exit', (code) => resolve(code ?? 1)));
}
