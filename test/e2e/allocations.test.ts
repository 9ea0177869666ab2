/** In Electron, whose allocator refuses 2 GiB in one piece: a cache of 2.5 GiB is made of smaller ones. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, runProgram } from './program.ts';

const hasCompiler = process.platform === 'linux' && !spawnSync('cc', ['--version']).error;
const name = `allocations of a process${hasCompiler ? '' : ' (skipped: they are counted with a C compiler on Linux)'}`;
const GIB = 2 ** 30;

describe.skipIf(!hasCompiler)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-allocations-'));
  const hook = path.join(folder, 'allocations.so');
  beforeAll(() => {
    execFileSync('cc', [
      '-O2',
      '-shared',
      '-fPIC',
      '-o',
      hook,
      path.join(import.meta.dirname, 'allocations.c'),
    ]);
  });
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  const run = async (preparation: string): Promise<{ said: string; largest: number; refused: number }> => {
    const report = path.join(folder, 'report.json');
    const { code, stdout } = await runProgram(
      `${preparation}
       const { createRuntime } = await import('onpolicy');
       const path = ${JSON.stringify(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'))};
       const rope = { type: 'linear', factor: 4 };
       const runtime = await createRuntime({
         model: { path, rope, cacheType: 'f32', contextSize: 4096, maxSequences: 256, kvTokens: 1_200_000, maxBatchTokens: 32 },
       });
       const request = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 4, ignore_eos: true };
       const answer = await runtime.createCompletion(request).catch((error) => error);
       process.stdout.write(answer.code ?? answer.choices[0].finish_reason);
       await runtime.close();`,
      'mjs',
      { env: { ...process.env, LD_PRELOAD: hook, ALLOCATIONS: report } },
    );
    expect(code).toBe(0);
    return {
      said: stdout,
      ...(JSON.parse(fs.readFileSync(report, 'utf8')) as { largest: number; refused: number }),
    };
  };

  it('of Electron are each below 2 GiB', async () => {
    const electron = `Object.defineProperty(process, 'versions', { value: { ...process.versions, electron: '45.0.0' } });`;
    const { said, largest, refused } = await run(electron);
    expect(said).toBe('length');
    expect(refused).toBe(0);
    expect(largest).toBeGreaterThan(0.5 * GIB);
    expect(largest).toBeLessThan(2 * GIB);
  });

  it('of Node are whole, and one that is refused is an error', async () => {
    const { said, largest, refused } = await run('');
    expect(said).toBe('OUT_OF_MEMORY');
    expect(refused).toBeGreaterThan(0);
    expect(largest).toBeGreaterThan(2 * GIB);
  });
});
