// Settings -> resident memory that a 2,048-token row's forward and backward take over the model's own pages.
import fs from 'node:fs';
import { openTrainer } from '../../dist/rl/trainer.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { passes, plainRow } from './rows.mjs';

const { model, threads, memoryBudget, size = 2048 } = settingsOfProcess();
const before = process.memoryUsage.rss();
const trainer = await openTrainer({
  model,
  gpu: false,
  threads,
  ...(memoryBudget && { memoryBudget }),
});
let mostBytes = 0;
const timer = setInterval(() => {
  mostBytes = Math.max(mostBytes, process.memoryUsage.rss());
}, 20);
const { forwardMs, backwardMs } = await passes(trainer, plainRow(size));
clearInterval(timer);
const { keptLayers } = trainer.memory();
await trainer.close();
report({
  growthBytes: mostBytes - before - fs.statSync(model).size, // the model's file is mapped: its pages are the bare model's
  keptLayers,
  tokensPerSecond: (1000 * size) / (forwardMs + backwardMs),
});
