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
  it('answers, stops, survives the end of the model process, learns from ratings, and takes a step back', async () => {
    const outcome = await run(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'));
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    const shown = JSON.parse(outcome.stdout);
    const killed = expect.stringMatching(/^the engine's process ended by signal SIGKILL /);
    expect(shown).toMatchObject({
      answer: 'The capital of Peru is Lima.',
      stopped: expect.stringMatching(/^Once upon/),
      killed: process.platform === 'win32' ? expect.any(String) : killed,
      again: 'The capital of Peru is Lima.',
      learned: { problem: null, isTraining: false, waiting: 0, ratings: 4 },
      undone: { waiting: 0, ratings: 4, steps: [] },
      focused: 1,
      titles: ['Tell me a story.'],
    });
    expect(shown.learned.steps).toEqual([
      expect.objectContaining({ step: 1, ratings: 4, liked: 0.5, question: 'Tell me a story.' }),
    ]);
    expect(fs.readFileSync(shown.report, 'utf8')).toContain('<!doctype html>');
  });

  it('shows that a model is not there', async () => {
    const outcome = await run(path.join(app, 'none.gguf'));
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(outcome.stdout)).toEqual({ problem: expect.stringContaining('none.gguf') });
  });

  it('leaves the window to the instance that runs already', async () => {
    const env = { ...process.env, USER_DATA: path.join(app, 'other'), OTHER_INSTANCE: 'yes' };
    const outcome = await runNode([path.join(app, 'src', 'main.mjs')], { cwd: app, env });
    expect(outcome).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });
});
