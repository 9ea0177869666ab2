// Threads -> bytes that they read from memory in a second, all together: each compares two buffers that no cache holds.
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const BYTES = 128 * 2 ** 20;
const SECONDS = 1;

if (isMainThread) {
  const { threads } = settingsOfProcess();
  const workers = Array.from({ length: threads }, () => new Worker(new URL(import.meta.url)));
  const heard = (worker) => new Promise((resolve) => worker.once('message', resolve));
  await Promise.all(workers.map(heard)); // all are ready
  const rates = workers.map(heard);
  for (const worker of workers) worker.postMessage('start');
  const bytesPerSecond = (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0);
  report({ bytesPerSecond });
} else {
  const [left, right] = [Buffer.alloc(BYTES, 1), Buffer.alloc(BYTES, 1)];
  parentPort.once('message', () => {
    const start = performance.now();
    let read = 0;
    while (performance.now() - start < 1000 * SECONDS) read += 2 * BYTES * (left.compare(right) === 0);
    parentPort.postMessage((1000 * read) / (performance.now() - start));
  });
  parentPort.postMessage('ready');
}
