/** Tinker's Python package, unmodified, against a server with the embedded model: loops that learn, and what is refused. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { createRuntime, serve } from '../../src/index.ts';
import { ROOT } from './program.ts';

const PYTHON = process.env['PYTHON'] ?? 'python3';
const { status } = spawnSync(PYTHON, ['-c', 'import tinker']);
if (status !== 0)
  process.stderr.write(
    `Tinker's package skipped: ${PYTHON} cannot import tinker (pip install tinker; PYTHONPATH)\n`,
  );

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-tinker-'));
afterAll(() => fs.rmSync(home, { recursive: true, force: true }));

describe.skipIf(status !== 0)("Tinker's package", () => {
  it('trains and samples', { timeout: 180_000 }, async () => {
    await using runtime = await createRuntime({
      home,
      gpu: false,
      models: { small: path.join(ROOT, 'models/onpolicy-tiny.gguf') },
    });
    const server = await serve(runtime, { tokens: [{ token: 'tml-secret', scopes: ['train', 'complete'] }] });
    try {
      const env = {
        ...process.env,
        TINKER_BASE_URL: server.url,
        TINKER_API_KEY: 'tml-secret',
        TINKER_MODEL: 'small',
      };
      const child = spawn(PYTHON, [path.join(import.meta.dirname, 'tinker-loops.py')], { env });
      const [stdout, stderr] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ]);
      expect(stdout, stderr).not.toBe('');
      const found = JSON.parse(stdout.trim().split('\n').at(-1)!);
      expect(found).toMatchObject({
        models: expect.arrayContaining(['small']),
        info: ['small', true, 8],
        base_model: 'small',
        said: { before: false, after: true },
        top: [null, 3, 3],
        likeliest: true,
        restored: [true, true],
        by_name: true,
        goes_on: true,
        stopped: [
          ['stop', true, 2],
          ['stop', true, 2],
        ],
      });
      expect(found.losses.at(-1)).toBeLessThan(found.losses[0] / 10);
      expect(found.shares[1]).toBeGreaterThan(found.shares[0] + 0.3);
      expect(found.off).toBeLessThan(1e-5);
      expect(found.gap).toBeLessThan(0.05);
      expect(found.many[0]).toBe(1030);
      expect(found.many[1]).toBeLessThan(1e-4);
      expect(found.paths[0]).toMatch(/^tinker:\/\/[0-9a-f-]{36}\/weights\/step-12$/);
      expect(found.paths[1]).toMatch(/^tinker:\/\/[0-9a-f-]{36}\/sampler_weights\/final@\d+$/);
      expect(found.taken).toMatch(/RequestFailedError.*a state step-12/);
      expect(found.refused).toEqual([
        expect.stringMatching(/BadRequestError.*loss_fn: expected one of cross_entropy/),
        expect.stringMatching(/BadRequestError.*data\.0\.model_input\.chunks\.0: expected tokens/),
        expect.stringMatching(/BadRequestError.*loss_fn_inputs\.mask: expected no such input/),
        expect.stringMatching(/BadRequestError.*loss_fn_inputs\.weights: expected no such input of ppo/),
        expect.stringMatching(/RequestFailedError.*data\.0\.model_input\.tokens/),
        expect.stringMatching(/BadRequestError.*prompt\.chunks\.0\.type: expected "encoded_text"/),
        expect.stringMatching(/NotFoundError.*no model has this name/),
      ]);
    } finally {
      await server.close();
    }
  });
});
