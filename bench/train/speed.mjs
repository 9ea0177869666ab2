// Settings -> speed of forward and backward over one row, and of the matrix product right before and after it.
import { createRequire } from 'node:module';
import { openLibrariesOf } from '../../dist/engine/native/libraries.js';
import { openTrainer } from '../../dist/rl/trainer.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { passes, plainRow } from './rows.mjs';

const { model, threads, rounds, size = 512 } = settingsOfProcess();
/** Multiplications and additions a token: products with the frozen weights, forward and to the inputs; head included. */
const FLOP_PER_TOKEN = 2.4e9;

const trainer = await openTrainer({ model, gpu: false, threads });
const row = plainRow(size);
const addon = createRequire(import.meta.url)('../../native/build/Release/testing.node');
await openLibrariesOf(addon, false);
const peak = () =>
  addon.measureMatMul({
    type: 'q8_0',
    in: 1024,
    out: 3072,
    rows: 512,
    repeats: 20,
    threads,
    device: '',
  });
await passes(trainer, row); // copies of the weights are made in the first one
const samples = { tokensPerSecond: [], gflops: [], peakGflops: [], forwardPeakShare: [] };
for (let round = 0; round < rounds; round++) {
  const before = await peak();
  const { forwardMs, backwardMs } = await passes(trainer, row);
  const best = Math.max(before, await peak());
  samples.tokensPerSecond.push((1000 * size) / (forwardMs + backwardMs));
  samples.gflops.push((FLOP_PER_TOKEN * size) / 1e6 / (forwardMs + backwardMs));
  samples.peakGflops.push(best);
  samples.forwardPeakShare.push((FLOP_PER_TOKEN * size) / 2e6 / forwardMs / best);
}
await trainer.close();
report(samples);
