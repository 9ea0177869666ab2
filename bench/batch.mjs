// Rows with shared prefixes and uneven answers -> rows a second of `batch`, beside a loop with 64 requests in flight in the order of the
// input; and what a row costs beside its answer.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../dist/index.js';
import { inProcess, result, runParts } from './measure.mjs';
import { wordPrompt } from './prompts.mjs';

const PREFIXES = 20;
const PREFIX_WORDS = 470; // 500 tokens with the template
const IN_FLIGHT = 64;
/** Interactive requests, one after the other. */
const CHATS = 8;
const LIMITS = { contextSize: 1024, maxSequences: 64, gpu: false };

/** Answers of 5 to 200 tokens, most of them short. */
const answerTokens = (i) => 5 + Math.round(195 * ((i * 0.61803) % 1) ** 3);

function rowOf(i) {
  return {
    custom_id: `row ${i}`,
    body: {
      messages: [
        { role: 'system', content: wordPrompt(PREFIX_WORDS, i % PREFIXES) },
        { role: 'user', content: `What about number ${i}?` },
      ],
      max_tokens: answerTokens(i),
      ignore_eos: true,
      seed: i,
    },
  };
}

function* rowsOf(count) {
  for (let i = 0; i < count; i++) yield rowOf(i);
}

/** Runs the parts. `requests`: rows of `speed`. `model`: a GGUF file; default the embedded model. */
export function run({ threads, model, ...options } = {}) {
  const settings = { ...LIMITS, threads, ...(model ? { model } : {}) };
  return runParts('batch', { speed, beside, volume }, { ...options, settings });
}

async function speed({ settings, rounds = 1, requests = 1000, log }) {
  const [loops, batches] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    log(`a loop, round ${round}`);
    loops.push(await measured(settings, requests, loop));
    log(`a batch, round ${round}`);
    batches.push(await measured(settings, requests, batch));
  }
  const rates = (name, runs) =>
    result(
      name,
      'rows/s',
      runs.map(({ rowsPerSecond }) => rowsPerSecond),
    );
  const prompts = (name, runs) =>
    result(
      name,
      'tokens',
      runs.map(({ promptTokens }) => promptTokens),
    );
  const [one, other] = [rates(`loop with ${IN_FLIGHT} in flight`, loops), rates('batch', batches)];
  return [
    one,
    { ...other, ratios: { loop: other.median / one.median } },
    prompts('loop: tokens of prompts computed', loops),
    prompts('batch: tokens of prompts computed', batches),
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

async function measured(settings, count, answerAll) {
  const runtime = await createRuntime(settings);
  await runtime.createCompletion({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 });
  const startMs = performance.now();
  await answerAll(runtime, count);
  const seconds = (performance.now() - startMs) / 1000;
  const { promptTokens } = runtime.stats();
  await runtime.close();
  return { rowsPerSecond: count / seconds, promptTokens };
}

/** What people write themselves. */
async function loop(runtime, count) {
  const rows = rowsOf(count);
  const work = async () => {
    for (const { body } of rows) await runtime.createCompletion(body);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

async function batch(runtime, count) {
  const output = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-batch-')), 'out.jsonl');
  await runtime.batch(rowsOf(count), { output }).done;
  fs.rmSync(path.dirname(output), { recursive: true });
}

/** One chat after the other, alone and beside a batch with 8 rows in flight. */
async function beside({ settings, log }) {
  const runtime = await createRuntime(settings);
  const chat = async (i) => {
    const startMs = performance.now();
    let firstMs = 0;
    let tokens = 0;
    const messages = [{ role: 'user', content: `${wordPrompt(30, 1000 + i)}?` }];
    const stream = await runtime.createCompletion({
      messages,
      max_tokens: 40,
      ignore_eos: true,
      stream: true,
    });
    for await (const { choices } of stream) {
      firstMs ||= choices[0]?.delta.content ? performance.now() - startMs : 0;
      tokens += 1;
    }
    return { firstMs, paceMs: (performance.now() - startMs - firstMs) / tokens };
  };
  const chats = async (from) => {
    const all = [];
    for (let i = 0; i < CHATS; i++) all.push(await chat(from + i));
    return all;
  };
  await chats(0);
  log('chats alone');
  const alone = await chats(CHATS);
  log('chats beside rows');
  const stop = new AbortController();
  const rows = runtime.batch(rowsOf(1e6), { concurrency: 8, signal: stop.signal }).done.catch(() => {});
  while (runtime.stats().running < 8) await new Promise((resolve) => setTimeout(resolve, 20));
  const together = await chats(2 * CHATS);
  stop.abort();
  await rows;
  await runtime.close();
  return ['firstMs', 'paceMs'].flatMap((field) => {
    const name = field === 'firstMs' ? 'first token of a chat' : 'token of a chat';
    const [one, both] = [alone, together].map((all) => all.map((found) => found[field]));
    const ratio = result('', '', both).median / result('', '', one).median;
    return [
      result(`${name}, alone`, 'ms', one),
      result(`${name}, beside 8 rows`, 'ms', both, { alone: ratio }),
    ];
  });
}
