// A tarball of the library -> an empty project that has it installed, with what is run and found there.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const MODEL = path.join(ROOT, 'models', 'onpolicy-tiny.gguf');

const MOST_SECONDS = 20;
/** Most milliseconds of processor time of an import, without Node's own start: the median of so many processes. */
const MOST_IMPORT_MS = 100;
const IMPORTS = 15;
/** Prints that time of one process. */
const IMPORT = `const before = process.cpuUsage();
await import('onpolicy');
const { user, system } = process.cpuUsage(before);
console.log(Math.round((user + system) / 1000));
`;

/** Makes the project in a folder of `work`, and asks the embedded model. Without a tarball the repository is packed. */
export async function newProject(work, tarball = pack(work)) {
  const folder = path.join(work, 'app');
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const project = new Project(folder);
  const startMs = performance.now();
  const ms = project.install(tarball);
  const { stdout } = await project.command(
    'onpolicy',
    'complete',
    'What is the capital of Peru?',
    '--temperature',
    '0',
  );
  const seconds = (performance.now() - startMs) / 1000;
  const importMs = await importTime(project);
  console.log(`install: ${(ms / 1000).toFixed(1)} s, ${Math.round(project.installedMiB())} MiB`);
  console.log(`first answer in an empty folder: ${seconds.toFixed(1)} s`);
  console.log(`import: ${importMs} ms of processor time`);
  const isAnswer = stdout === 'The capital of Peru is Lima.\n';
  project.check(
    `the first answer takes less than ${MOST_SECONDS} s`,
    isAnswer && seconds < MOST_SECONDS,
    stdout,
  );
  project.check(
    `an import takes less than ${MOST_IMPORT_MS} ms of processor time`,
    importMs < MOST_IMPORT_MS,
  );
  return project;
}

/** The median of some processes. */
async function importTime(project) {
  const file = project.write('import.mjs', IMPORT);
  const times = [];
  for (let i = 0; i < IMPORTS; i++) times.push(Number((await project.node(file)).stdout));
  return times.sort((a, b) => a - b)[IMPORTS >> 1];
}

function pack(work) {
  const words = ['pack', '--json', `--pack-destination=${work}`];
  const output = execFileSync('npm', words, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [{ filename }] = Object.values(JSON.parse(output.slice(output.search(/^[[{]/m))));
  return path.join(work, filename);
}

class Project {
  folder;
  held = 0;
  failed = 0;

  constructor(folder) {
    this.folder = folder;
  }

  /** Notes whether something holds, with what was found where it does not. */
  check(claim, holds, found = '') {
    if (holds) this.held += 1;
    else this.failed += 1;
    console.log(`${holds ? 'ok ' : 'NOT'}  ${claim}${holds || found === '' ? '' : `\n${found}`}`);
  }

  /** Adds packages, and returns the milliseconds that took. */
  install(...packages) {
    const startMs = performance.now();
    const words = ['install', ...packages, '--prefer-offline', '--no-audit', '--no-fund'];
    execFileSync('npm', words, { cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    return performance.now() - startMs;
  }

  installedMiB() {
    const modules = path.join(this.folder, 'node_modules');
    const files = fs.readdirSync(modules, { recursive: true }).map((name) => path.join(modules, name));
    return files.reduce((size, file) => size + fs.lstatSync(file).size, 0) / 2 ** 20;
  }

  /** Writes a file of the project and returns its path. */
  write(name, text) {
    const file = path.join(this.folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  /** A copy of the embedded model under another name. */
  copyModel(name) {
    fs.copyFileSync(MODEL, path.join(this.folder, name));
  }

  /** Runs a program in the project: its exit code, or signal, and what it printed. */
  run(program, words, { env = {}, timeoutMs = 300_000 } = {}) {
    return new Promise((resolve, reject) => {
      const child = spawn(program, words, {
        cwd: this.folder,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: timeoutMs,
      });
      const output = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'])
        child[name].setEncoding('utf8').on('data', (text) => {
          output[name] += text;
        });
      child.on('error', reject).on('close', (code, signal) => resolve({ code: code ?? signal, ...output }));
    });
  }

  node(...words) {
    return this.run(process.execPath, words);
  }

  /** Runs a command of an installed package. */
  command(name, ...words) {
    return this.run(path.join(this.folder, 'node_modules', '.bin', name), words);
  }
}

/** The versions of packages that the tests here use, for `npm install`. */
export function asTested(names) {
  const { devDependencies } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  return names.map((name) => (devDependencies[name] ? `${name}@${devDependencies[name]}` : name));
}

/** A port of this machine on which nothing listens. */
export async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
