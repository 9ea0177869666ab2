import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { listSteps, readFacts, stepFolder } from '../../src/rl/checkpoint-step.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { writeTinyModel } from './tiny-model.ts';

const isBuilt = fs.existsSync(fileURLToPath(new URL('../../dist/rl/train.js', import.meta.url)));
if (!isBuilt) process.stderr.write('killed job tests skipped: run "npm run setup" first\n');
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 6);
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-killed-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

describe.skipIf(!isBuilt)('a job that is killed', () => {
  it(`leaves its last complete step, and the next job goes on (${KILLS} times)`, async () => {
    const model = path.join(root, 'model.gguf');
    const checkpoints = path.join(root, 'checkpoints');
    await writeTinyModel(model, { architecture: 'llama', type: 'q8_0', layers: 1 });
    await using trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
    let kept: readonly number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const script = fileURLToPath(new URL('./killed-job.mjs', import.meta.url));
      const child = spawn(process.execPath, [script, model, checkpoints], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout!, 'data');
      if (kill % 2 === 1) await once(child.stdout!, 'data'); // behind its first job
      await sleep(100 + ((kill * 137) % 400)); // at all sorts of moments: a job takes about that long
      child.kill('SIGKILL');
      await once(child, 'exit');
      const steps = await listSteps(checkpoints);
      expect(steps.slice(0, kept.length)).toEqual(kept); // none is lost
      const newest = steps.at(-1) ?? 0;
      expect(newest - steps.length).toBeLessThanOrEqual(kill + 1); // a kill skips one number at most
      kept = steps;
      if (newest > 0) {
        await trainer.load(stepFolder(checkpoints, newest));
        expect(await readFacts(checkpoints, newest)).toMatchObject({ step: newest });
      }
    }
    expect(kept.length).toBeGreaterThan(0);
  }, 600_000);
});
