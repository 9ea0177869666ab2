// Settings -> rounds of sampling and training in a runtime: how long each takes, and for how long of it neither engine nor trainer computes.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { loadAddon } from '../../dist/engine/native/index.js';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const {
  model,
  threads,
  rounds,
  groups = 8,
  answers = 8,
  promptTokens = 512,
  answerTokens = 32,
} = settingsOfProcess();

/** Calls into the addon that run, and for how long at least one did. */
const busy = { calls: 0, sinceMs: 0, totalMs: 0 };

function begin() {
  if (busy.calls++ === 0) busy.sinceMs = performance.now();
}

function end() {
  if (--busy.calls === 0) busy.totalMs += performance.now() - busy.sinceMs;
}

/** Counts the calls of an object's functions. Those that end at once count for nothing. */
function watch(object, names) {
  for (const name of names) {
    const original = object[name];
    const value = (...given) => {
      const result = original.apply(object, given);
      if (!(result instanceof Promise)) return result;
      begin();
      return result.finally(end);
    };
    Object.defineProperty(object, name, { value });
  }
}

const addon = loadAddon();
for (const [opener, calls] of Object.entries({
  createContext: ['step', 'finish', 'loadAdapter'],
  openTrainer: ['forward', 'backward', 'step'],
})) {
  const open = addon[opener];
  addon[opener] = async (...given) => {
    const opened = await open.apply(addon, given);
    watch(opened, calls);
    return opened;
  };
}

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-bench-'));
const runtime = await createRuntime({
  model,
  gpu: false,
  threads,
  contextSize: promptTokens + answerTokens + 128,
  maxSequences: 32,
  home,
});
const registered = await runtime.models.create({ base_model: model });
let prompts = 0;

async function round(groupCount, answerCount) {
  const trajectory_groups = await Promise.all(
    Array.from({ length: groupCount }, async () => {
      const messages = [{ role: 'user', content: wordPrompt(promptTokens, 5000 + prompts++) }];
      const { choices } = await runtime.createCompletion({
        model: registered.id,
        messages,
        n: answerCount,
        max_completion_tokens: answerTokens,
        ignore_eos: true,
        logprobs: true,
        return_token_ids: true,
      });
      const trajectories = choices.map((choice, i) => ({
        messages_and_choices: [...messages, choice],
        reward: i % 2,
      }));
      return { trajectories };
    }),
  );
  const job = await runtime.train({ model_id: registered.id, trajectory_groups });
  await job.done;
}

const samples = { roundMs: [], outsideShare: [] };
await round(1, 2); // opens the trainer
for (let i = 0; i < rounds; i++) {
  const before = busy.totalMs;
  const start = performance.now();
  await round(groups, answers);
  const ms = performance.now() - start;
  samples.roundMs.push(ms);
  samples.outsideShare.push(1 - (busy.totalMs - before) / ms);
}
await runtime.close();
fs.rmSync(home, { recursive: true });
report({ ...samples, groups, answers, promptTokens, answerTokens });
