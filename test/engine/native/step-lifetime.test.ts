/** Steps that are given a closure of their own -> they ask it at their end, as draft heads need. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';

const hasCompiler = process.platform === 'linux' && !spawnSync('c++', ['--version']).error;
const name = `a step keeps what it asks${hasCompiler ? '' : ' (skipped: it needs a C++ compiler on Linux)'}`;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-step-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

it.skipIf(!hasCompiler)(
  name,
  () => {
    const native = path.resolve(import.meta.dirname, '../../../native');
    const program = path.join(folder, 'step');
    const sources = [
      path.join(import.meta.dirname, 'step-lifetime.cc'),
      path.join(native, 'base/compute-turns.cc'),
    ];
    const flags = [
      '-std=c++20',
      '-O0',
      '-pthread',
      '-fsanitize=address',
      '-fsanitize-address-use-after-scope',
    ];
    execFileSync('c++', [...flags, '-I', native, ...sources, '-o', program]);
    const { stdout, stderr } = spawnSync(program, { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(stdout).toBe('1\n');
  },
  120_000,
);
