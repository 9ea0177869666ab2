// Schemas with documents -> compile and mask times of other engines, each in a process that gets one schema after the other.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { librariesFolder } from '../bare/build.mjs';
import { MODELS_FOLDER } from '../model/make.mjs';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** llama.cpp's own converter of schemas and its sampler, of the shipped libraries; undefined without a C++ compiler. */
async function buildGbnf(sources) {
  const libraries = await librariesFolder();
  const program = path.join(MODELS_FOLDER, 'gbnf');
  const source = here('./gbnf.cc');
  if (!fs.existsSync(program) || fs.statSync(source).mtimeMs > fs.statSync(program).mtimeMs) {
    const names = fs.readdirSync(libraries);
    const linked = ['libllama.', 'libllama-common.', 'libggml.', 'libggml-base.'].map((stem) =>
      path.join(
        libraries,
        names.find((name) => name.startsWith(stem)),
      ),
    );
    const folders = [here('../../native/include'), path.join(sources, 'common')];
    execFileSync(
      process.env.CXX ?? 'c++',
      [
        '-std=c++20',
        '-O2',
        source,
        ...folders.map((folder) => `-I${folder}`),
        '-o',
        program,
        ...linked,
      ].concat(`-Wl,-rpath,${libraries}`),
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
  }
  return program;
}

/** Name of each engine -> the command of its process. */
export async function peerCommands({ addon, vocabularyFile, sources }) {
  return {
    'xgrammar (WASM)': [process.execPath, here('./xgrammar.mjs'), addon, vocabularyFile],
    'llama.cpp GBNF': [await buildGbnf(sources), vocabularyFile],
  };
}

/** Times of one schema: `documents[i]` are the masks of document i in microseconds, or undefined where it was rejected. */
async function ask(child, lines, { index, schema, documents }) {
  child.stdin.write(
    `${[index, schema, documents.length, ...documents.map((ids) => ids.join(' '))].join('\n')}\n`,
  );
  // Engines write warnings of their own between the answers.
  const answer = async (begins) => {
    for (;;) {
      const { value: line, done } = await lines.next();
      if (done) throw new Error('the engine has ended');
      if (begins.test(line)) return line.split(' ');
    }
  };
  const [, time] = await answer(new RegExp(`^${index} (refused|[0-9.e+-]+)$`));
  if (time === 'refused') return undefined;
  const walks = [];
  for (const _ of documents) {
    const [verdict, ...times] = await answer(/^(accepted|rejected)/);
    walks.push(verdict === 'accepted' ? times.map(Number) : undefined);
  }
  return { compileMs: Number(time), documents: walks };
}

/**
 * Asks an engine about one schema after the other, for so many seconds in all. One that says nothing for `patience` seconds is
 * ended and begun anew behind that schema. Gives the answers by index; undefined where a schema was refused or took too long.
 */
export async function askPeer([command, ...words], tasks, { seconds, patience }) {
  const answers = new Map();
  const end = performance.now() + seconds * 1000;
  for (let at = 0; at < tasks.length && performance.now() < end; ) {
    const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.on('error', () => {});
    const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    for (; at < tasks.length && performance.now() < end; at++) {
      const timer = setTimeout(() => child.kill('SIGKILL'), patience * 1000);
      const answer = await ask(child, lines, tasks[at]).catch(() => null);
      clearTimeout(timer);
      answers.set(tasks[at].index, answer ?? undefined);
      if (answer !== null) continue;
      at++;
      break;
    }
    child.kill('SIGKILL');
  }
  return answers;
}
