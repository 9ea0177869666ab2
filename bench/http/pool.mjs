// Settings -> rollouts a second through a pool of one server and through one of two, in turn. Each server has a core of its own, which
// the rollouts' own process shares.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connect, createPool, record } from '../../dist/index.js';
import { gatherTrajectoryGroups } from '../../dist/rl/public.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';

const {
  model,
  rounds,
  groups = 4,
  groupSize = 8,
  promptTokens = 32,
  answerTokens = 16,
} = settingsOfProcess();
const CORES = [0, 1];
const script = fileURLToPath(new URL('./pool-member.mjs', import.meta.url));

async function startServer(core) {
  const words = ['-c', String(core), process.execPath, script, JSON.stringify({ model })];
  const child = spawn('taskset', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, url };
}

let prompts = 0;

/** Returns the number of rollouts of new prompts per second. */
async function rate(service) {
  const tasks = Array.from({ length: groups }, () => wordPrompt(promptTokens, 9000 + prompts++));
  const startMs = performance.now();
  await gatherTrajectoryGroups(
    tasks,
    async (content, { signal, attempt }) => {
      const recorder = record(service, { model: 'sampler' });
      const request = {
        messages: [{ role: 'user', content }],
        max_completion_tokens: answerTokens,
        ignore_eos: true,
      };
      await recorder.service.createCompletion(request, { signal });
      return recorder.finish({ reward: attempt % 2 });
    },
    { groupSize },
  );
  return (1000 * groups * groupSize) / (performance.now() - startMs);
}

const servers = await Promise.all(CORES.map(startServer));
process.once('exit', () => {
  for (const { child } of servers) child.kill();
});
const clients = servers.map(({ url }) => connect({ baseUrl: url }));
const pools = { one: createPool(clients.slice(0, 1)), two: createPool(clients) };
for (const pool of Object.values(pools)) await rate(pool);
const rates = { one: [], two: [] };
for (let round = 0; round < rounds; round++)
  for (const [name, pool] of Object.entries(pools)) rates[name].push(await rate(pool));
report({ ...rates, rollouts: groups * groupSize, promptTokens, answerTokens });
