// Rows with shared prefixes and uneven answers -> rows a second of `batch`, beside a loop with 64 requests in flight in the order of the
// input; and what a row costs beside its answer.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from '../../dist/index.js';
import { IN_FLIGHT, inFlight, PREFIXES, rowsOf } from '../batch/rows.mjs';
import { inProcess, result, runParts } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

/** Interactive requests, one after the other. */
const CHATS = 8;
/** Before the first chat; longer before each further one. */
const PAUSE_MS = 40;
const SMALL_CACHE = 8192;
/** Rows of one prefix among those that `batch` reads ahead. */
const ROWS_OF_PREFIX = Math.floor(4096 / PREFIXES);
const LIMITS = { contextSize: 1024, maxSequences: IN_FLIGHT, gpu: false };
const LOOP = `loop with ${IN_FLIGHT} in flight`;
/** Each of its slots computes the prompt of its first row in full. */
const SERVER_TIMEOUT_MS = 2 * 3600 * 1000;
const SERVER = `llama.cpp's server, ${IN_FLIGHT} slots and in flight`;

/** Runs the parts. `requests`: rows of all parts but `volume`. `model`: a GGUF file; default the embedded model. */
export async function run({ threads, model, ...options } = {}) {
  const settings = { ...LIMITS, threads, ...(model ? { model } : {}) };
  const small = { settings: { ...settings, kvTokens: SMALL_CACHE }, suffix: ', small cache' };
  const long = ({ requests = ROWS_OF_PREFIX, ...given }) => ({
    ...given,
    requests,
    isWarm: true,
    suffix: ', of many rows',
  });
  const parts = {
    loop: (given) => speed(LOOP, loop, given),
    batch: (given) => speed('batch', batch, given),
    'llama-server': serverSpeed,
    'small-loop': (given) => speed(LOOP, loop, { ...given, ...small }),
    'small-batch': (given) => speed('batch', batch, { ...given, ...small }),
    'long-loop': (given) => speed(LOOP, loop, long(given)),
    'long-batch': (given) => speed('batch', batch, { ...long(given), prefixes: 1 }),
    beside,
    volume,
  };
  const found = await runParts('batch', parts, {
    ...options,
    only: options.only ?? ['loop', 'batch', 'beside', 'volume'],
    settings,
  });
  const medians = new Map(found.map(({ name, median }) => [name, median]));
  return found.map((row) => {
    if (!row.name.startsWith('batch')) return row;
    const peers = Object.entries({ loop: LOOP, 'llama-server': SERVER })
      .map(([peer, name]) => [peer, row.median / medians.get(row.name.replace('batch', name))])
      .filter(([, ratio]) => Number.isFinite(ratio));
    return peers.length > 0 ? { ...row, ratios: Object.fromEntries(peers) } : row;
  });
}

async function speed(name, answerAll, { rounds = 1, requests = 1000, suffix = '', ...given }) {
  const runs = [];
  for (let round = 0; round < rounds; round++) runs.push(await measured(answerAll, { ...given, requests }));
  const numbers = (field) => runs.map((found) => found[field]);
  return [
    result(name + suffix, 'rows/s', numbers('rowsPerSecond')),
    result(`${name}${suffix}: CPU time of a row`, 'ms', numbers('cpuMs')), // with one thread, which waits for no other
    result(`${name}${suffix}: tokens of prompts computed`, 'tokens', numbers('promptTokens')),
  ];
}

async function serverSpeed({ settings, rounds = 1, requests = 1000, llamaServer }) {
  if (llamaServer === undefined) throw new Error('llama-server: give its program with --llama-server');
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    const given = { program: path.resolve(llamaServer), requests, inFlight: IN_FLIGHT, ...settings };
    runs.push(await inProcess('batch/llama-server.mjs', given, { timeoutMs: SERVER_TIMEOUT_MS }));
  }
  const numbers = (field) => runs.map((found) => found[field]);
  return [
    result(SERVER, 'rows/s', numbers('rowsPerSecond')),
    result(`${SERVER}: CPU time of a row`, 'ms', numbers('cpuMs')),
  ];
}

async function volume({ rows = 1_000_000 }) {
  const found = await inProcess('batch/volume.mjs', { rows }, { nodeFlags: ['--expose-gc'] });
  return [
    result('overhead of a row', 'us', [found.us]),
    result('overhead of a row: CPU', 'us', [found.cpuUs]),
    result('a row that was done before', 'us', [found.resumeUs]),
    ...found.resident.map(({ rows, mib }) => result(`memory after ${rows} rows`, 'MiB', [mib])),
  ];
}

/** `isWarm`: the prefixes are computed before, as in the middle of a long run. */
async function measured(answerAll, { settings, requests, isWarm = false, prefixes = PREFIXES }) {
  const runtime = await createRuntime(settings);
  const rows = { ...settings, prefixes };
  await runtime.createCompletion({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 });
  for (const { body } of isWarm ? rowsOf(prefixes, rows) : [])
    await runtime.createCompletion({ ...body, max_tokens: 1 });
  const [startMs, startCpuMs, before] = [performance.now(), cpuMs(), runtime.stats()];
  await answerAll(runtime, rowsOf(requests, rows));
  const seconds = (performance.now() - startMs) / 1000;
  const spentMs = cpuMs() - startCpuMs;
  const promptTokens = runtime.stats().promptTokens - before.promptTokens;
  await runtime.close();
  return { rowsPerSecond: requests / seconds, cpuMs: spentMs / requests, promptTokens };
}

/** The loop that callers would write without batches. */
async function loop(runtime, rows) {
  await inFlight(rows, ({ body }) => runtime.createCompletion(body));
}

async function batch(runtime, rows) {
  const output = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-batch-')), 'out.jsonl');
  await runtime.batch(rows, { output }).done;
  fs.rmSync(path.dirname(output), { recursive: true });
}

/** One chat after the other, alone and beside a batch with 8 rows in flight, with pauses in which the rows go on. */
async function beside({ settings, log }) {
  const runtime = await createRuntime(settings);
  const chat = async (i) => {
    const [startMs, startCpuMs] = [performance.now(), cpuMs()];
    let first = null;
    let tokens = 0;
    const messages = [{ role: 'user', content: `${wordPrompt(30, 1000 + i)}?` }];
    const stream = await runtime.createCompletion({
      messages,
      max_tokens: 40,
      ignore_eos: true,
      stream: true,
    });
    for await (const { choices } of stream) {
      if (choices[0]?.delta.content)
        first ??= { ms: performance.now() - startMs, cpuMs: cpuMs() - startCpuMs };
      tokens += 1;
    }
    return {
      'first token of a chat': first.ms,
      'first token of a chat: CPU time': first.cpuMs,
      'token of a chat': (performance.now() - startMs - first.ms) / tokens,
      'token of a chat: CPU time': (cpuMs() - startCpuMs - first.cpuMs) / tokens,
    };
  };
  const chats = async (from) => {
    const all = [];
    for (let i = 0; i < CHATS; i++) {
      await sleep(PAUSE_MS * (1 + i));
      all.push(await chat(from + i));
    }
    return all;
  };
  await chats(0);
  log('chats alone');
  const alone = await chats(CHATS);
  log('chats beside rows');
  const stop = new AbortController();
  const rows = runtime
    .batch(rowsOf(1e6, settings), { concurrency: 8, signal: stop.signal })
    .done.catch(() => {});
  while (runtime.stats().running < 8) await sleep(20);
  const together = await chats(2 * CHATS);
  stop.abort();
  await rows;
  await runtime.close();
  return Object.keys(alone[0]).flatMap((name) => {
    const [one, both] = [alone, together].map((all) => all.map((found) => found[name]));
    const ratio = result('', '', both).median / result('', '', one).median;
    return [
      result(`${name}, alone`, 'ms', one),
      result(`${name}, beside 8 rows`, 'ms', both, { alone: ratio }),
    ];
  });
}

/** Returns the CPU time of this process. On a busy machine it says more than elapsed time. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
