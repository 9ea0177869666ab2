/** `npm run make:model` in miniature: the loss falls, the file loads in the engine, and the shipped one stays. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-make-model-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

it('trains a model from random weights, examines it and keeps the better one', async () => {
  const shipped = path.join(ROOT, 'models/onpolicy-tiny.gguf');
  const before = fs.readFileSync(shipped);
  const out = path.join(folder, 'new.gguf');
  const options = ['--steps', '60', '--rows', '1', '--report', '20', '--questions', '4', '--out', out];
  const { code, stdout, stderr } = await runNode(['scripts/make/make-model.mjs', ...options], { cwd: ROOT });
  expect(code, stderr).toBe(0);
  const losses = [...stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
  expect(losses).toHaveLength(3);
  expect(losses[2]).toBeLessThan(losses[0]! - 1);
  expect(stdout).toContain('| skill | former | new |');
  expect(stdout).toContain('the shipped file stays');
  expect(fs.readFileSync(shipped).equals(before)).toBe(true);
  const made = fs.readFileSync(out);
  expect(made.length).toBe(before.length);
  expect(made.equals(before)).toBe(false);
});
