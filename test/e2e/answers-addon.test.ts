/** answers.node, which `npm start` builds first in a fresh clone, in a folder that has nothing else of the addons. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

const clone = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-answers-'));
const demo = path.join(clone, 'dist', 'apps', 'demo', 'index.js');

beforeAll(() => {
  execFileSync(process.execPath, ['scripts/build-addon.mjs', '--answers'], { cwd: ROOT });
  const release = path.join('native', 'build', 'Release');
  fs.mkdirSync(path.join(clone, release), { recursive: true });
  fs.copyFileSync(path.join(ROOT, release, 'answers.node'), path.join(clone, release, 'answers.node'));
  fs.cpSync(path.join(ROOT, 'dist'), path.join(clone, 'dist'), { recursive: true });
  fs.copyFileSync(path.join(ROOT, 'package.json'), path.join(clone, 'package.json'));
  for (const name of ['models', 'node_modules'])
    fs.symlinkSync(path.join(ROOT, name), path.join(clone, name), 'junction');
}, 120_000);
afterAll(() => fs.rmSync(clone, { recursive: true }));

it('answers as the whole addon does', async () => {
  const outcome = await runNode([demo, '--answers'], { cwd: clone });
  expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(outcome.stdout).toContain('The capital of Peru is Lima.');
  const whole = await runNode(['dist/apps/demo/index.js', '--answers']);
  expect(textsOf(outcome.stdout)).toEqual(textsOf(whole.stdout));
});

it('says that the trainer is missing', async () => {
  const outcome = await runNode([demo, '--rest'], { cwd: clone });
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toMatch(/NATIVE_UNAVAILABLE[\s\S]*no trainer for .*onpolicy\.node/);
});

/** Lines of an output in order of their text, without times, and without cached tokens, as kernels of our own take shorter prefixes from the cache. */
function textsOf(output: string): string[] {
  return output
    .split('\n')
    .map((line) => line.replaceAll(/[\d.]+ m?s|\d+ tokens per second|\d+ of them/g, '').trim())
    .sort();
}
