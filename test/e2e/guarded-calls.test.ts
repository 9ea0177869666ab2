/** On Windows an assert and an exception of the engine, which another compiler has built, end the guarded call, and calls in callbacks. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const COMPILER = 'x86_64-w64-mingw32-g++-posix';
const WINE = '/usr/lib/wine/wine64';
const canRun =
  process.platform === 'linux' && fs.existsSync(WINE) && !spawnSync(COMPILER, ['--version']).error;
const name = `guarded calls on Windows${canRun ? '' : ' (skipped: they need MinGW and wine)'}`;

describe.skipIf(!canRun)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-guarded-calls-'));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  it('end with a failure', () => {
    const here = (file: string): string => path.join(import.meta.dirname, file);
    const native = here('../../native');
    const compile = (...words: string[]): Buffer =>
      execFileSync(COMPILER, ['-O2', '-static', ...words], { cwd: folder });
    compile('-shared', '-o', 'library.dll', here('guarded-calls-library.cc'));
    const sources = [here('guarded-calls.cc'), path.join(native, 'base', 'guarded.cc')];
    compile('-std=c++20', '-I', native, '-o', 'calls.exe', ...sources, 'library.dll');
    const env = { ...process.env, WINEDEBUG: '-all', WINEPREFIX: path.join(folder, 'wine') };
    expect(execFileSync(WINE, ['calls.exe'], { cwd: folder, env, encoding: 'utf8' }).trim()).toBe(
      '500 of 500',
    );
  }, 300_000);
});
