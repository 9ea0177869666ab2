// A number of rows -> what each costs beside its answer, and memory as it goes: a run over a service that answers at once.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { answerRows, createBatch } from '../../dist/serve/batch/index.js';

const MIB = 2 ** 20;

/** Answers cost nothing once their requests are checked. */
function instant() {
  const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
  const choices = [
    { index: 0, message: { role: 'assistant', content: 'An answer.' }, finish_reason: 'stop' },
  ];
  const createCompletion = async (_request, { traceId }) => ({
    id: `chatcmpl-${traceId}`,
    object: 'chat.completion',
    choices,
    usage,
  });
  return { answer: answerRows({ createCompletion }), defaultModel: null, concurrency: 128 };
}

/** Writes rows of about 300 bytes. */
function writeRows(file, count) {
  const handle = fs.openSync(file, 'w');
  const system = 'You are asked for many things, and you answer each of them in a few words. '.repeat(2);
  for (let from = 0; from < count; from += 10_000) {
    let text = '';
    for (let i = from; i < Math.min(count, from + 10_000); i++) {
      const messages = [
        { role: 'system', content: system + (i % 20) },
        { role: 'user', content: `What about number ${i}?` },
      ];
      text += `${JSON.stringify({ custom_id: `row ${i}`, url: '/v1/chat/completions', body: { messages } })}\n`;
    }
    fs.writeSync(handle, text);
  }
  fs.closeSync(handle);
}

/** Microseconds a row, and resident memory in MiB after each tenth. */
async function measureVolume(count) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-volume-'));
  try {
    const [input, output] = [path.join(folder, 'in.jsonl'), path.join(folder, 'out.jsonl')];
    writeRows(input, count);
    const resident = [];
    let tenth = 1;
    const onProgress = ({ rows }) => {
      if (rows < (tenth * count) / 10) return;
      tenth = Math.floor((10 * rows) / count) + 1;
      globalThis.gc?.();
      resident.push({ rows, mib: Math.round(process.memoryUsage.rss() / MIB) });
    };
    const cpu = process.cpuUsage();
    const startMs = performance.now();
    const summary = await createBatch(instant(), input, { output, onProgress }).done;
    const ms = performance.now() - startMs;
    const { user, system } = process.cpuUsage(cpu);
    const againMs = performance.now();
    await createBatch(instant(), input, { output, resume: true }).done; // everything is done
    const resumeMs = performance.now() - againMs;
    const us = {
      us: (1000 * ms) / count,
      cpuUs: (user + system) / count,
      resumeUs: (1000 * resumeMs) / count,
    };
    return { ...summary, ...us, resident };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

const { rows } = JSON.parse(process.argv[2]);
console.log(JSON.stringify(await measureVolume(rows)));
