/** Each allocation of an addon fails in turn, on whatever thread it is: the work ends with an error, and the process goes on. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeTinyModel } from '../rl/tiny-model.ts';

const hasCompiler = process.platform === 'linux' && !spawnSync('c++', ['--version']).error;
const name = `without memory${hasCompiler ? '' : ' (skipped: allocations fail with a C++ compiler on Linux)'}`;
/** Expected failures of promises, of functions, of classes, and of masks. */
const FAILURES = [
  'OUT_OF_MEMORY',
  'BACKEND_FAILED',
  'std::bad_alloc',
  'a mask without memory allows nothing',
];
/** Limit of allocations per kind of work. No kind has that many. */
const MOST_ALLOCATIONS = 20_000;

describe.skipIf(!hasCompiler)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-failing-memory-'));
  const [hook, control, model] = ['hook.so', 'control', 'model.gguf'].map((file) =>
    path.join(folder, file),
  ) as [string, string, string];
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each([1, 3])(
    'native work fails, %i times in a row, and succeeds when it is repeated',
    async (inARow) => {
      const here = (file: string): string => path.join(import.meta.dirname, file);
      execFileSync('c++', ['-std=c++20', '-O2', '-shared', '-fPIC', '-o', hook, here('failing-memory.cc')]);
      fs.writeFileSync(control, new Uint8Array(12));
      await writeTinyModel(model, { architecture: 'llama', type: 'q8_0' });
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [here('failing-memory.mjs'), model, control, String(MOST_ALLOCATIONS), String(inARow)],
        { encoding: 'utf8', env: { ...process.env, LD_PRELOAD: hook, FAILING_MEMORY: control } },
      );
      expect(status, stderr).toBe(0);
      type Report = { isThrough: boolean; answer: string; outcomes: Record<string, number> };
      const report = JSON.parse(stdout) as Record<string, Report>;
      expect(Object.keys(report)).toHaveLength(inARow === 1 ? 8 : 6);
      for (const [work, { isThrough, answer, outcomes }] of Object.entries(report)) {
        expect(isThrough, work).toBe(true);
        expect([answer, ...FAILURES], work).toEqual(expect.arrayContaining(Object.keys(outcomes)));
        expect(outcomes[answer], work).toBeGreaterThan(0);
        expect(Object.keys(outcomes).length, work).toBeGreaterThan(1);
      }
    },
    120_000,
  );
});
