// Settings -> milliseconds until a full service refuses, as another process sees it: the first of a burst, and one request at a time
// while others run and wait.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { url, request, capacity, burst, tries } = settingsOfProcess();
const agent = new http.Agent({ keepAlive: true });
const running = [];

/** The status of a request, and after how long it came; its answer is not waited for. */
function ask(body) {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const sent = http.request(`${url}/v1/chat/completions`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.resume();
      running.push(new Promise((done) => response.once('end', done)));
      resolve({ status: response.statusCode, ms: performance.now() - startMs });
    });
    sent.end(JSON.stringify(body));
  });
}

const streamed = { ...request, stream: true }; // its status comes with its first token
const once = { ...request, max_tokens: 1 };
const filling = Array.from({ length: capacity }, () => ask(streamed));
await sleep(50);
const oneMs = [];
for (let i = 0; i < tries; i++) {
  const { status, ms } = await ask(once);
  if (status === 429) oneMs.push(ms);
  await sleep(7);
}
await Promise.all(filling);
await Promise.all(running);
const answers = Array.from({ length: burst }, () => ask(streamed));
const firstMs = await Promise.any(
  answers.map(async (answer) => {
    const { status, ms } = await answer;
    return status === 429 ? ms : Promise.reject(new Error(`status ${status}`));
  }),
);
const refused = (await Promise.all(answers)).filter(({ status }) => status === 429).length;
await Promise.all(running);
report({ oneMs, firstMs, refused });
