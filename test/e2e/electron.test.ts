/** The app in `examples/electron` on a stand-in for Electron. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, ROOT, runNode } from './program.ts';

const EXAMPLE = path.join(ROOT, 'examples', 'electron');
const STAND_INS = path.join(ROOT, 'test', 'e2e', 'electron');

const app = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-electron-'));
beforeAll(() => {
  fs.cpSync(path.join(EXAMPLE, 'src'), path.join(app, 'src'), { recursive: true });
  fs.copyFileSync(path.join(EXAMPLE, 'package.json'), path.join(app, 'package.json'));
  const modules = path.join(app, 'node_modules');
  fs.mkdirSync(path.join(modules, 'electron'), { recursive: true });
  fs.symlinkSync(ROOT, path.join(modules, 'onpolicy'), 'junction');
  fs.copyFileSync(path.join(STAND_INS, 'electron.cjs'), path.join(modules, 'electron', 'index.js'));
});
afterAll(() => fs.rmSync(app, { recursive: true }));

/** Runs the app and what stands in for its window. */
function run(model: string): Promise<Outcome> {
  const env = {
    ...process.env,
    MODEL: model,
    USER_DATA: path.join(app, 'data'),
    WINDOW_PROGRAM: path.join(STAND_INS, 'window.mjs'),
  };
  return runNode([path.join(app, 'src', 'main.mjs')], { cwd: app, env });
}

describe('the app', () => {
  it('shows an answer, stops one, survives the end of the model process, and ends', async () => {
    const outcome = await run(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'));
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    const killed = expect.stringMatching(/^\(BACKEND_FAILED: the engine's process ended by signal SIGKILL /);
    expect(JSON.parse(outcome.stdout)).toEqual([
      'The capital of Peru is Lima.',
      expect.stringMatching(/^\(ABORTED: .*\)$/),
      process.platform === 'win32' ? expect.any(String) : killed,
      'The capital of Peru is Lima.',
    ]);
  });

  it('shows that a model is not there', async () => {
    const outcome = await run(path.join(app, 'none.gguf'));
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(outcome.stdout)).toEqual([expect.stringContaining('none.gguf')]);
  });
});
