// `npm start`: makes the clone ready for first answers, then builds the rest beside the first part of the demo, which sends them. The second part,
// which learns and follows a schema, waits for it; so does all that runs with further words, such as the path of a model.
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const words = process.argv.slice(2);

process.exitCode = await start();

/** Resolves with the exit code. */
async function start() {
  const setup = await end(run(['scripts/setup.mjs', '--answers'], ['ignore', 2, 2]));
  if (setup !== 0) return setup;
  if (words.length > 0)
    return (
      (await end(run(['scripts/build-addon.mjs', '--if-missing'], ['ignore', 2, 2]))) ||
      (await demo(...words))
    );
  const rest = buildRest();
  const answers = await demo('--answers');
  if (answers !== 0) return answers;
  if (rest.builder.exitCode === null)
    process.stderr.write(
      '\nstart: waiting for the trainer and the grammar engine, which are still being built\n',
    );
  return (await rest.ended) || (await demo('--rest'));
}

function demo(...options) {
  return end(run(['dist/apps/demo/index.js', ...options], 'inherit'));
}

/** Builds what is missing, with a lower priority. Lines of the compilers are shown only if they fail: they would stand amid those of the demo. */
function buildRest() {
  const builder = run(['scripts/build-addon.mjs', '--if-missing'], ['ignore', 'pipe', 'pipe']);
  const lines = [];
  for (const stream of [builder.stdout, builder.stderr]) stream.on('data', (chunk) => lines.push(chunk));
  try {
    os.setPriority(builder.pid, os.constants.priority.PRIORITY_LOW); // its compilers inherit it
  } catch {
    // it has ended already
  }
  const ended = end(builder).then((code) => {
    if (code !== 0) process.stderr.write(Buffer.concat(lines));
    return code;
  });
  return { builder, ended };
}

function run([file, ...options], stdio) {
  return spawn(process.execPath, [path.join(root, file), ...options], { stdio });
}

/** Resolves with the exit code, when all output is read. A program that a signal ended has 1. */
function end(child) {
  return new Promise((resolve, reject) =>
    child.on('error', reject).on('close', (code) => resolve(code ?? 1)),
  );
}
