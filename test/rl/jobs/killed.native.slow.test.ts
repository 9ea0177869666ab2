import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { MessageOrChoice } from '../../../src/protocol/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';

const isBuilt = fs.existsSync(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)));
if (!isBuilt) process.stderr.write('killed runtime tests skipped: run "npm run setup" first\n');
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 3);
const MOST_WAIT_MS = 1200; // a few jobs
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-killed-runtime-'));
afterAll(() => fs.rmSync(home, { recursive: true }));

/** Starts a process that trains, and kills it `delayMs` after its first job began to be queued. */
async function trainAndKill(delayMs: number): Promise<void> {
  const script = fileURLToPath(new URL('./killed-runtime.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const [code] = await Promise.race([once(child.stdout!, 'data').then(() => [null]), ended]);
  expect(code, 'what the process ended with before it trained').toBeNull();
  await sleep(delayMs);
  child.kill('SIGKILL');
  await ended;
}

/** Ids of all jobs that the store has, of any state. */
function jobIds(modelId: string): string[] {
  return fs.readdirSync(path.join(home, 'models', modelId, 'jobs'));
}

describe.skipIf(!isBuilt)('a runtime that is killed while it trains', () => {
  it(`leaves a readable store and its last step, and the next job runs (${KILLS} times)`, async () => {
    let last = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      await trainAndKill(((kill * 0.618) % 1) * MOST_WAIT_MS); // at all sorts of moments
      const problems: string[] = [];
      await using runtime = await createRuntime({
        home,
        gpu: false,
        threads: 1,
        onStoreProblem: (problem) => problems.push(problem),
      });
      const model = await runtime.models.create({
        base_model: 'onpolicy-tiny',
        name: 'pupil',
        return_existing: true,
      });
      const { data } = await runtime.checkpoints.list(model.id, { limit: 100 });
      const newest = data[0]?.step ?? 0;
      expect(newest).toBeGreaterThanOrEqual(last);
      const messages = [{ role: 'user' as const, content: 'Tell me a story.' }];
      const sampled = { messages, n: 4, max_tokens: 24, logprobs: true, return_token_ids: true };
      const { choices, system_fingerprint } = await runtime.createCompletion({ ...sampled, model: model.id });
      if (data[0]) expect(system_fingerprint).toContain(data[0].id);
      const trajectories = choices.map((choice, i) => ({
        messages_and_choices: [...messages, choice] as MessageOrChoice[],
        reward: i % 2,
      }));
      const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
      last = (await job.done).step;
      // A step's number is taken before its folder gets its name: a kill between them leaves a number out.
      expect(last - newest).toBeOneOf([1, 2]);
      for (const id of jobIds(model.id))
        expect((await runtime.trainingJobs.retrieve(id)).status).toMatch(/^(completed|failed)$/);
      expect(problems).toEqual([]);
    }
    expect(last).toBeGreaterThanOrEqual(KILLS);
  }, 600_000);
});
