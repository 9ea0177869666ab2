import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { PolicyLossInputs } from '../../src/protocol/index.ts';
import { policyLoss } from '../../src/rl/loss.ts';
import { openLossPool } from '../../src/rl/loss-pool.ts';
import { resolveSettings } from '../../src/rl/settings.ts';

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
    expect(result).toEqual(policyLoss(columns(), { ppo: true }));
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
    await using pool = openLossPool(fragile);
    expect(await pool.compute(columns(), resolveSettings())).toEqual(policyLoss(columns(), {}));
    expect(fs.existsSync(marker)).toBe(true);
  });

  it('gives up on a worker that dies every time', async () => {
    const broken = path.join(folder, 'broken.mjs');
    fs.writeFileSync(broken, 'export function run() { process.exit(1); }');
    await using pool = openLossPool(broken);
    await expect(pool.compute(columns(), resolveSettings())).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
    });
  });

  it('passes the code of a bad input on', async () => {
    await using pool = openLossPool();
    const uneven = { ...columns(), mask: Uint8Array.of(1) };
    await expect(pool.compute(uneven, resolveSettings())).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});
