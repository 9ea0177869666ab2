/** Another release of node-llama-cpp in the same process: whichever opens second is refused with a line that says what to do. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyModel } from '../rl/tiny-model.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const { installed } = JSON.parse(
  fs.readFileSync(path.join(ROOT, 'src/engine/native/release.json'), 'utf8'),
) as { installed: Record<string, string> };
const PACKAGE = 'linux-x64';
const RELEASES = ['3.21.1', '3.22.1'];
const canRun = process.platform === 'linux' && process.arch === 'x64';

/** Returns why the release could not be installed, or an empty string. */
function install(release: string, folder: string): string {
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const packages = [`node-llama-cpp@${release}`, `@node-llama-cpp/${PACKAGE}@${release}`];
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=optional', '--prefer-offline'];
  const { status, stderr } = spawnSync('npm', ['install', ...options, ...packages], {
    cwd: folder,
    encoding: 'utf8',
  });
  return status === 0 ? '' : (stderr.split('\n')[0] ?? 'npm failed');
}

describe.skipIf(!canRun)('two releases in one process', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-two-releases-'));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }), 60_000);
  const model = path.join(folder, 'model.gguf');
  const other = RELEASES.find((release) => release !== installed[PACKAGE])!;
  let why = '';
  beforeAll(async () => {
    await writeTinyModel(model, { architecture: 'llama', type: 'q8_0' });
    why = install(other, path.join(folder, 'others'));
    if (why !== '')
      process.stderr.write(`two releases: skipped, as ${other} could not be installed: ${why}\n`);
  }, 300_000);

  function run(first: 'ours' | 'theirs' | 'thread'): { results: Record<string, unknown>[]; log: string } {
    const program = path.join(import.meta.dirname, 'two-releases.mjs');
    const args = [program, first, model, ROOT, path.join(folder, 'others')];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    const results = JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<string, unknown>[];
    return { results, log: stderr };
  }

  it('ours first: an addon of the other release is not opened', ({ skip }) => {
    skip(why !== '', why);
    const { results, log } = run('ours');
    expect(results[0]).toMatchObject({ tokens: expect.any(Array) });
    // node-llama-cpp reports why it does not load an addon on standard error, and throws an error of its own.
    expect(results[1]).toMatchObject({ message: 'NoBinaryFoundError' });
    expect(log).toMatch(/install one release of node-llama-cpp for both, .* `isolate: true`/);
  }, 120_000);

  it('theirs in a thread after ours: the next model is refused', ({ skip }) => {
    skip(why !== '', why);
    const { results } = run('thread');
    expect(results[0]).toMatchObject({ tokens: expect.any(Array) });
    expect(results[1]).toMatchObject({ tokens: expect.any(Number) });
    const message = expect.stringMatching(/another thread .* opened another release .*isolate: true/);
    expect(results[2]).toMatchObject({ code: 'NATIVE_UNAVAILABLE', message });
  }, 120_000);

  it('theirs first: our libraries are not opened', ({ skip }) => {
    skip(why !== '', why);
    const { results } = run('theirs');
    expect(results[0]).toMatchObject({ tokens: expect.any(Number) });
    expect(results[1]).toMatchObject({
      code: 'NATIVE_UNAVAILABLE',
      message: expect.stringMatching(/isolate: true/),
    });
  }, 120_000);
});
