// Runs coding agents as their users install them, unmodified, against this library's server: `node scripts/check/try-agents.mjs`.
// The model's answers are scripted. Packages come from npm into a scratch folder. Options:
//   --at FOLDER         where they are installed, kept for the next run; else a temporary folder
//   --only claude,codex, --cases question,abort    some of the clients, some of the cases
//   --slow-ms 400000    how long the slow prompt is read
//   --second-turn       tokens and times of two turns on the embedded model, in place of the cases
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { serve } from '../../dist/index.js';
import { CASES } from './agents/cases.mjs';
import { CLIENTS } from './agents/clients.mjs';
import { createScriptedService } from './agents/scripted-service.mjs';
import { secondTurn } from './agents/second-turn.mjs';

const { values } = parseArgs({
  options: {
    at: { type: 'string' },
    only: { type: 'string' },
    cases: { type: 'string' },
    'slow-ms': { type: 'string', default: '25000' },
    'second-turn': { type: 'boolean', default: false },
  },
});
const KEY = 'secret';
const clients = CLIENTS.filter(({ id }) => !values.only || values.only.split(',').includes(id));
const cases = Object.keys(CASES).filter((name) => !values.cases || values.cases.split(',').includes(name));
const slowMs = Number(values['slow-ms']);
const folder = path.resolve(values.at ?? fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-agents-')));

try {
  install(clients.flatMap(({ packages }) => packages));
  process.stdout.write(values['second-turn'] ? await turnTable() : await caseTable());
} finally {
  if (!values.at) fs.rmSync(folder, { recursive: true, force: true });
}

async function caseTable() {
  const rows = await Promise.all(clients.map((client) => tryClient(client)));
  return `| | version | ${cases.join(' | ')} |\n|${'---|'.repeat(cases.length + 2)}\n${rows.join('\n')}\n`;
}

async function turnTable() {
  const rows = [];
  for (const client of clients) {
    const turns = await secondTurn(
      (prompt, options) => run(client, prompt, options),
      newHome(client, 'turns'),
    );
    const cells = turns.map(({ prompt, cached, firstMs }) => `${prompt} | ${cached} | ${firstMs} ms`);
    rows.push(`| ${client.name} | ${cells.join(' | ')} |`);
  }
  const turn = (name) => `${name}: tokens | cached | first token`;
  return `| | ${turn('first turn')} | ${turn('second turn')} |\n|${'---|'.repeat(7)}\n${rows.join('\n')}\n`;
}

function newHome({ id }, name) {
  const home = path.join(folder, 'homes', `${id}-${name.replaceAll(' ', '-')}`);
  fs.rmSync(home, { recursive: true, force: true });
  return home;
}

function install(packages) {
  fs.mkdirSync(folder, { recursive: true });
  const missing = packages.filter((name) => !fs.existsSync(path.join(folder, 'node_modules', name)));
  if (missing.length === 0) return;
  const words = ['install', '--prefix', folder, '--no-audit', '--no-fund', ...missing];
  const { status } = spawnSync('npm', words, { stdio: 'inherit' });
  if (status !== 0) throw new Error('npm failed');
}

/** Runs the cases of a client one after the other, on a separate server. */
async function tryClient(client) {
  const service = createScriptedService();
  const server = { refused: 0 };
  const accessLog = ({ status }) => {
    if (status === 401) server.refused += 1;
  };
  const running = await serve(service.api, { tokens: [KEY], accessLog });
  const cells = [];
  for (const name of cases) {
    service.reset();
    const home = newHome(client, name);
    const ask = (prompt, options) => run(client, prompt, { url: running.url, home, ...options });
    const problem = await CASES[name]({ ask, service, server, client, slowMs });
    process.stderr.write(`${client.name}, ${name}: ${problem || 'passes'}\n`);
    if (problem) process.exitCode = 1;
    cells.push(problem ? 'no' : 'yes');
  }
  await running.close();
  const { version } = JSON.parse(
    fs.readFileSync(path.join(folder, 'node_modules', client.packages[0], 'package.json'), 'utf8'),
  );
  return `| ${client.name} | ${version} | ${cells.join(' | ')} |`;
}

/** Runs a client with a separate home folder and without settings of this machine. */
async function run(client, prompt, options) {
  const { url, home, key = KEY, resumes = false, contextSize, limitMs = 120_000, interruptsAt } = options;
  const project = path.join(home, 'project');
  fs.mkdirSync(project, { recursive: true });
  client.configure?.({ url, key }, home);
  const [program, ...words] = client.words(prompt, { resumes, contextSize, home });
  const bin = path.join(folder, 'node_modules', '.bin', program);
  const started = performance.now();
  const child = spawn(fs.existsSync(bin) ? bin : program, words, {
    cwd: project,
    env: { PATH: process.env.PATH, HOME: home, CI: '1', ...client.env?.({ url, key }) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a separate process group, which is ended as a whole
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
  const end = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {} // it has ended
  };
  const limit = setTimeout(() => end('SIGKILL'), limitMs);
  const poll = setInterval(() => {
    if (!interruptsAt?.()) return;
    clearInterval(poll);
    setTimeout(() => end('SIGINT'), 500);
  }, 50);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(limit);
  clearInterval(poll);
  end('SIGKILL');
  return { code, text, ms: performance.now() - started };
}
