/** Clients of decisions that need Node 22: `openai` 7 and its runner, `ai` 7 with both providers, unmodified, over HTTP and in process. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ROOT } from './program.ts';

const PACKAGES = [
  'openai@7.59.0',
  'ai@7.0.173',
  '@ai-sdk/openai@4.0.118',
  '@ai-sdk/typesafe-ai@3.0.0',
  'node@22',
];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-decision-clients-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** The reason why the packages cannot be installed here, or null. */
function install(): string | null {
  try {
    fs.writeFileSync(path.join(folder, 'package.json'), '{"allowScripts":{"node":true}}');
    const flags = ['--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', ...flags, ...PACKAGES], { cwd: folder, stdio: 'pipe', timeout: 240_000 });
    return null;
  } catch (error) {
    return (error as Error).message.split('\n')[0]!;
  }
}

const why = install();
if (why) process.stderr.write(`clients of decisions skipped: ${why}\n`);

describe.skipIf(why)('clients of decisions', () => {
  it('get the numbers of the method, over HTTP and in process', { timeout: 180_000 }, () => {
    const node = path.join(folder, 'node_modules/node/bin/node');
    const script = path.join(ROOT, 'test/e2e/decision-clients.mjs');
    const output = execFileSync(node, [script, folder, path.join(ROOT, 'dist')], {
      encoding: 'utf8',
      timeout: 170_000,
    });
    const ways = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(ways.map(({ way }) => way)).toEqual(['http', 'process']);
    for (const { openai, own, status, decisions, answers } of ways) {
      expect(openai).toEqual(own);
      expect({ status, decisions }).toEqual({ status: 'verified', decisions: 1 });
      expect(answers.openai.is).toEqual({ type: 'boolean', probability: own[0].probability });
      expect(answers.typesafe.is.probability).toBeGreaterThan(0.99); // it sends the state as JSON
      expect(Object.keys(answers.typesafe)).toEqual(['is', 'which', 'how']);
    }
  });
});
