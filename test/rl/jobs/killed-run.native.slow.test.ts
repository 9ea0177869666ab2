/** A process that is killed in the middle of steps and saves -> a run that goes on from a whole state: the one before or after. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { readSafetensors } from '../../../src/models/lora/safetensors.ts';
import { openTrainer } from '../../../src/rl/trainer.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';

const isBuilt = fs.existsSync(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)));
if (!isBuilt) process.stderr.write('killed run tests skipped: run "npm run setup" first\n');
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 2);
const MOST_WAIT_MS = 20; // the time of a step and its save
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-killed-run-'));
afterAll(() => fs.rmSync(home, { recursive: true }));

/** Starts a process that takes steps, and kills it soon after it began with the step of a number. Resolves with the id of its run. */
async function stepAndKill(id: string | null, step: number, delayMs: number): Promise<string> {
  const script = fileURLToPath(new URL('./killed-run.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, home, ...(id ? [id] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const said: string[] = [];
  for await (const line of createInterface(child.stdout!)) if (said.push(line) > step) break;
  expect(said.length, 'what the process said before it ended').toBe(step + 1);
  await sleep(delayMs);
  child.kill('SIGKILL');
  await ended;
  return said[0]!;
}

/** The adapter after each number of optimizer steps, by the trainer's own calls. */
async function* expectedWeights() {
  const model = fileURLToPath(new URL('../../../models/onpolicy-tiny.gguf', import.meta.url));
  await using trainer = await openTrainer({ model, rank: 4, alpha: 8, gpu: false, threads: 1 });
  const tokens = Int32Array.of(5, 9, 14, 3, 8, 21);
  const places = tokens.map((_, i) => i);
  const alone = new Int32Array(tokens.length);
  const row = { tokens, positions: places, groupIds: alone, parentIds: alone, logitRows: places };
  const step = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, maxGradNorm: 0 };
  for (;;) {
    yield trainer.adapter();
    await trainer.forward({ ...row, targetTokens: Int32Array.of(9, 14, 3, 8, 21, 30) });
    await trainer.backward(new Float32Array(tokens.length).fill(-1));
    await trainer.step(step);
  }
}

describe.skipIf(!isBuilt)('a training run whose process is killed', () => {
  it(`goes on from a whole state (${KILLS} times)`, async () => {
    const expected: Awaited<ReturnType<typeof nextWeights>>[] = [];
    const weights = expectedWeights();
    const nextWeights = async () => (await weights.next()).value!;
    let id: string | null = null;
    let last = 1;
    for (let kill = 0; kill < KILLS; kill++) {
      id = await stepAndKill(id, 3 + (kill % 4), (kill * 3.7) % MOST_WAIT_MS);
      await using runtime = await createRuntime({ home, gpu: false, threads: 1 });
      const [info] = await runtime.trainingRuns.list();
      expect(info).toMatchObject({ id, states: ['newest'] });
      expect(info!.sequence).toBeGreaterThanOrEqual(last);
      expect(info!.sequence % 3).toBe(1); // a save is every third step, from the first
      last = info!.sequence;
      const steps = (last - 1) / 3;
      while (expected.length <= steps) expected.push(await nextWeights());
      const folder = path.join(home, 'models', info!.model_id, 'training-runs', id);
      const { states } = JSON.parse(fs.readFileSync(path.join(folder, 'run.json'), 'utf8'));
      const saved = path.join(folder, states[0].folder);
      const { tensors } = readSafetensors(fs.readFileSync(path.join(saved, 'adapter_model.safetensors')));
      const module = Object.keys(tensors).find((name) => name.includes('layers.0.self_attn.o_proj.lora_B'))!;
      expect(tensors[module]!.values).toEqual(expected[steps]!['blk.0.attn_output']!.b);
      await using run = await runtime.openTraining({ run: id });
      await run.forward([
        { model_input: { chunks: [{ tokens: [5, 9] }] }, loss_fn_inputs: { target_tokens: [9, 14] } },
      ]);
    }
    await weights.return();
    expect(last).toBeGreaterThan(1);
  }, 600_000);
});
