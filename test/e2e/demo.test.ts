/** `npm start`, as someone sees it who pipes it, and as someone sees it on a terminal. */
import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

/** Anything a terminal would take as a command: escape, carriage return, bell, backspace. */
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f]/;

/** util-linux's `script` gives a program a terminal. */
const hasTerminal = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

describe('npm start', () => {
  it('prints plain text when piped, and ends by itself', async () => {
    const outcome = await runNode(['dist/apps/demo/index.js']);
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(outcome.stdout).not.toMatch(CONTROL);
    expect(outcome.stdout).toContain('The capital of Peru is Lima.');
    expect(outcome.stdout).toMatch(/\d+ tokens per second together/);
    expect(outcome.stdout).toMatch(/"4" +\d+\.\d % {3}"3" \d+\.\d %/);
    expect(outcome.stdout).toMatch(/prompt: \d+ tokens, [1-9]\d* of them from the cache/);
    expect(outcome.stdout).toMatch(/models\/seeing\/pictures\/three\.png\n( {2}[.a-z]{32}\n){16}/);
    expect(outcome.stdout).toMatch(
      /> What is in the picture\?\n {2}a purple triangle at the top right, a green square at the bottom left and a yellow square at the bottom right\n/,
    );
    expect(outcome.stdout).toMatch(
      /round {2}1 {2}reward 0\.[0-4]\d[\s\S]*round 16 {2}reward (0\.[89]\d|1\.00)/,
    );
    expect(outcome.stdout).toMatch(
      /JSON Schema.*\n> Extract .*\n {2}\{\s*"name":\s*"Omar",\s*"age":\s*26,\s*"city":\s*"Delhi"\s*\}\n/,
    );
    expect(outcome.stdout).toMatch(/\d+ tokens generated and \d+ prompt tokens read in \d+ steps/);
  });

  it('ends quietly when the reader of the pipe leaves', () => {
    const shell = `set -o pipefail; "${process.execPath}" dist/apps/demo/index.js | head -1`;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', shell], { cwd: ROOT, encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: 'A language model inside this Node process\n',
      stderr: '',
    });
  });

  it('answers with the model named on the command line, or says what is wrong with it', async () => {
    const named = await runNode(['dist/apps/demo/index.js', 'models/onpolicy-tiny.gguf']);
    expect(named).toMatchObject({ code: 0, stderr: '' });
    expect(named.stdout).toContain('models/onpolicy-tiny.gguf: ready after');
    const missing = await runNode(['dist/apps/demo/index.js', 'missing.gguf']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toMatch(/MODEL_NOT_FOUND|missing\.gguf/);
  });

  it.skipIf(!hasTerminal)('colours on a terminal, unless NO_COLOR is set; never moves the cursor', () => {
    const onTerminal = (env: NodeJS.ProcessEnv): string =>
      execFileSync('script', ['-qec', `"${process.execPath}" dist/apps/demo/index.js`, '/dev/null'], {
        cwd: ROOT,
        env,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }).replaceAll('\r\n', '\n'); // a terminal adds the carriage return
    const { NO_COLOR: _, ...env } = process.env;
    const colored = onTerminal(env);
    expect(colored).toContain('\u001b[1m');
    expect(colored.replaceAll(/\u001b\[[\d;]+m/g, '')).not.toMatch(CONTROL);
    expect(onTerminal({ ...env, NO_COLOR: '1' })).not.toMatch(CONTROL);
  });
});
