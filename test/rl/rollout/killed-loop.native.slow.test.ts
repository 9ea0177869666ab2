/** A training loop that is killed at random -> the same checkpoints as one that is left alone. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('./killed-loop.mjs', import.meta.url));
const isBuilt = fs.existsSync(
  fileURLToPath(new URL('../../../dist/rl/rollout/train-loop.js', import.meta.url)),
);
if (!isBuilt) process.stderr.write('killed loop tests skipped: run "npm run build" first\n');
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 6);
const STEPS = 3 * KILLS;
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-killed-loop-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

/** Runs the loop; kills it some time after it first sampled, unless `killMs` is null. Returns whether it came to its end. */
async function runLoop(home: string, killMs: number | null): Promise<boolean> {
  const child = spawn(process.execPath, [script, home, String(STEPS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  if (killMs !== null) {
    await Promise.race([once(child.stdout!, 'data'), ended]);
    await Promise.race([sleep(killMs), ended]);
    child.kill('SIGKILL');
  } else child.stdout!.resume();
  const [code] = await ended;
  expect([0, null]).toContain(code);
  return code === 0;
}

/** Returns the contents of the newest checkpoint, and the steps of all. */
function stateOf(home: string) {
  const [model] = fs.readdirSync(path.join(home, 'models'));
  const folder = path.join(home, 'models', model!);
  const checkpoints = path.join(folder, 'checkpoints');
  const steps = fs
    .readdirSync(checkpoints)
    .filter((name) => /^\d+$/.test(name)) // beside them lies the file with the newest number
    .toSorted();
  const digest = (name: string) =>
    createHash('sha256')
      .update(fs.readFileSync(path.join(checkpoints, steps.at(-1)!, name)))
      .digest('hex');
  const evaluations = fs
    .readFileSync(path.join(folder, 'metrics.jsonl'), 'utf8')
    .split('\n')
    .flatMap((line) => (line.includes('"val"') ? [JSON.parse(line) as { step: number }] : []))
    .map(({ step }) => step);
  return {
    steps,
    weights: digest('adapter_model.safetensors'),
    optimizer: digest('optimizer.safetensors'),
    evaluations: [...new Set(evaluations)],
  };
}

describe.skipIf(!isBuilt)('a loop that is killed', () => {
  it(`ends with the weights of one that is not (${KILLS} times)`, async () => {
    const [killed, whole] = [path.join(root, 'killed'), path.join(root, 'whole')];
    expect(await runLoop(whole, null)).toBe(true);
    let kills = 0;
    for (; kills < KILLS; kills++) if (await runLoop(killed, (kills * 137) % 400)) break;
    expect(kills).toBe(KILLS);
    expect(await runLoop(killed, null)).toBe(true);
    expect(stateOf(killed)).toEqual(stateOf(whole));
  }, 600_000);
});
