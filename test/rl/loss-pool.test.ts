import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { PolicyLossInputs } from '../../src/protocol/index.ts';
import { policyLoss, policyLosses } from '../../src/rl/caller-losses.ts';
import { toPolicyLoss } from '../../src/rl/loss.ts';
import { openLossPool } from '../../src/rl/loss-pool.ts';
import { resolveSettings } from '../../src/rl/settings.ts';
import { normals } from './tiny-model.ts';

const workerFile = fileURLToPath(new URL('../../dist/rl/loss-worker.js', import.meta.url));
const isBuilt = fs.existsSync(workerFile);
if (!isBuilt) process.stderr.write('loss pool tests skipped: run "npm run setup" first\n');

function columns(): PolicyLossInputs {
  return {
    new_logprobs: Float64Array.of(-1, -2, -3),
    old_logprobs: Float64Array.of(-1.1, Number.NaN, -2.5),
    advantages: Float64Array.of(1, 1, -1),
    weights: Float64Array.of(1, 1, 1),
    mask: Uint8Array.of(1, 1, 1),
    sequence_ids: Int32Array.of(0, 0, 1),
  };
}

describe.skipIf(!isBuilt)('loss pool', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-loss-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it('computes what the function computes, and leaves the columns as they are', async () => {
    await using pool = openLossPool();
    const sent = columns();
    const result = await pool.compute(sent, resolveSettings({ ppo: true }));
    expect(toPolicyLoss(result)).toEqual(policyLoss(columns(), { ppo: true }));
    expect(sent).toEqual(columns());
  });

  it('redoes a row whose worker died', async () => {
    const marker = path.join(folder, 'died');
    const fragile = path.join(folder, 'fragile.mjs');
    fs.writeFileSync(
      fragile,
      `import fs from 'node:fs';
       import { run as compute } from ${JSON.stringify(pathToFileURL(workerFile).href)};
       export function run(task) {
         if (!fs.existsSync(${JSON.stringify(marker)})) {
           fs.writeFileSync(${JSON.stringify(marker)}, '');
           process.exit(1);
         }
         return compute(task);
       }`,
    );
    await using pool = openLossPool({ workerFile: fragile });
    expect(toPolicyLoss(await pool.compute(columns(), resolveSettings()))).toEqual(policyLoss(columns(), {}));
    expect(fs.existsSync(marker)).toBe(true);
  });

  it('gives up on a worker that dies every time', async () => {
    const broken = path.join(folder, 'broken.mjs');
    fs.writeFileSync(broken, 'export function run() { process.exit(1); }');
    await using pool = openLossPool({ workerFile: broken });
    await expect(pool.compute(columns(), resolveSettings())).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
    });
  });

  it('computes many rows as one alone, in their order, on all cores', async () => {
    const random = normals(9);
    const rows = Array.from({ length: 60 }, (_, row): PolicyLossInputs => {
      const count = 1 + ((row * 37) % 200);
      const draw = () => Array.from({ length: count }, random);
      return {
        new_logprobs: Float64Array.from(draw(), (value) => -Math.abs(value)),
        old_logprobs: draw().map((value) => (value > 1 ? null : -Math.abs(value))), // as JSON has them
        ref_logprobs: Float32Array.from(draw(), (value) => -Math.abs(value)),
        advantages: draw(),
        weights: Float32Array.from(draw(), Math.abs),
        mask: draw().map((value) => Number(value > -1)),
        sequence_ids: Int32Array.from(draw(), (_, i) => Math.floor(i / 7)),
      };
    });
    const config = { ppo: true, kl_penalty_coef: 0.1, importance_sampling_level: 'average' } as const;
    const expected = rows.map((row) => policyLoss(row, config));
    const losses = policyLosses(rows, config);
    (rows[0]!.new_logprobs as Float64Array).fill(Number.NaN); // the call has its own copy
    expect(await losses).toEqual(expected);
    expect(await policyLosses([])).toEqual([]);
  });

  it.each<[string, unknown[], object | null, string]>([
    ['no list of rows', {} as never, null, 'rows: expected a list, got an object'],
    ['a row without a column', [columns(), {}], null, 'rows.1.new_logprobs: '],
    [
      'a column of another length',
      [columns(), { ...columns(), mask: [1] }],
      null,
      'rows.1.mask: expected 3 entries, got 1',
    ],
    [
      'a text',
      [{ ...columns(), mask: [1, 'x', 1] }],
      null,
      'rows.0.mask.1: expected a number or null, got "x"',
    ],
    [
      'a function',
      [{ ...columns(), mask: [1, () => {}, 1] }],
      null,
      'rows.0.mask.1: expected a number or null, got a function',
    ],
    [
      'an unknown weight',
      [columns(), { ...columns(), weights: [1, null, 1] }],
      null,
      'rows.1.weights.1: expected a finite number for a trained token, got NaN',
    ],
    ['an unknown column', [{ ...columns(), masks: [1] }], null, 'rows.0.masks: '],
    ['preferences', [], { preference_loss: 'dpo' }, 'preference_loss: expected null'],
    ['an unknown setting', [], { epsilons: 1 }, 'epsilons: '],
  ])('many rows: %s', async (_, rows, config, message) => {
    const failed = policyLosses(rows as PolicyLossInputs[], config as never);
    await expect(failed).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
    await expect(failed).rejects.toMatchObject({
      param: expect.stringMatching(/^(rows|preference_loss|epsilons)/),
    });
  });

  it('keeps no process alive, and its worker loads little', () => {
    const program = `
      import { policyLosses } from ${JSON.stringify(pathToFileURL(workerFile.replace('loss-worker', 'public')).href)};
      const [loss] = await policyLosses([{ new_logprobs: [-1], old_logprobs: [-1], advantages: [1], weights: [1], mask: [1], sequence_ids: [0] }]);
      console.log(loss.grad_new_logprobs.length);`;
    const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      timeout: 25_000, // idle threads end after 30 seconds
      encoding: 'utf8',
    });
    expect({ stdout: stdout.trim(), signal }).toEqual({ stdout: '1', signal: null });
    const files = [workerFile];
    for (const file of files)
      for (const [, to] of fs.readFileSync(file, 'utf8').matchAll(/from "(\.{1,2}\/[^"]+)"/g))
        if (!files.includes(path.resolve(path.dirname(file), to!)))
          files.push(path.resolve(path.dirname(file), to!));
    const bytes = files.reduce((sum, file) => sum + fs.statSync(file).size, 0);
    expect(bytes).toBeLessThan(200_000);
  });

  it('passes the code of a bad input on', async () => {
    await using pool = openLossPool();
    const uneven = { ...columns(), mask: Uint8Array.of(1) };
    await expect(pool.compute(uneven, resolveSettings())).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});
