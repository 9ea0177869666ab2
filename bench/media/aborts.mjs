// Settings -> what is left after requests with pictures were aborted at random moments, most of them while one is encoded.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from '../../dist/index.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { aboutPicture, pictureUri } from './pair.mjs';

const { model, requests, parallel = 16, latestMs = 60, pictures = 40 } = settingsOfProcess();
const runtime = await createRuntime({
  model,
  gpu: false,
  threads: 1,
  contextSize: 1024,
  maxSequences: parallel,
  media: { cacheBytes: 0 },
});
const uris = Array.from({ length: pictures }, (_, number) => pictureUri(number));

let started = 0;
let aborted = 0;
async function work() {
  while (started < requests) {
    const index = started++;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), Math.random() * latestMs);
    try {
      await runtime.createCompletion(aboutPicture(uris[index % pictures]), { signal: controller.signal });
    } catch (error) {
      if (error.code !== 'ABORTED') throw error;
      aborted += 1;
    } finally {
      clearTimeout(timer);
    }
  }
}
await runtime.tokenize(''); // loads the model
await Promise.all(Array.from({ length: parallel }, work));
await sleep(1000); // an abort takes effect at the encoder's next operations
const { running: encoding, cachedBytes, encodes } = runtime.mediaStats();
const { running, waiting, kvTokensInUse } = runtime.stats();
await runtime.close();
report({ aborted, encodes, left: encoding + cachedBytes + running + waiting + kvTokensInUse });
