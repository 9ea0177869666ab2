/** A clone whose grammar engine is not built yet: the first request that needs it builds it, or names the command. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

const work = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-late-')));
const native = path.join(work, 'native', 'build');
const built = path.join(ROOT, 'native', 'build', 'Release');
const grammar = path.join(native, 'Release', 'grammar.node');
const script = path.join(work, 'scripts', 'build-addon.mjs');
const model = path.join(ROOT, 'models', 'onpolicy-tiny.gguf');

/** Stands in for half a minute of compiler. */
const BUILDS = `
import fs from 'node:fs';
fs.copyFileSync(${JSON.stringify(path.join(built, 'grammar.node'))}, ${JSON.stringify(grammar)});
fs.copyFileSync(${JSON.stringify(path.join(native, 'onpolicy.sha256'))}, ${JSON.stringify(path.join(native, 'grammar.sha256'))});
fs.appendFileSync('builds.txt', 'x');
`;
const FAILS = `process.stderr.write('onpolicy: missing g++\\n');\nprocess.exitCode = 1;\n`;

/** Two requests at once. */
const ASYNC = `
import { readVocabulary } from './dist/structured/index.js';
const read = () => readVocabulary(${JSON.stringify(model)}).then(({ size }) => size > 0, ({ code, message }) => code + ': ' + message);
console.log((await Promise.all([read(), read()])).join('\\n'));
`;
const SYNC = `
import { createVocabulary } from './dist/structured/index.js';
try {
  console.log(createVocabulary({ tokens: ['a', ''], eosTokenIds: [1] }).size);
} catch ({ code, message }) {
  console.log(code + ': ' + message);
}
`;
/** Structured output of a runtime, whose \`log\` gets the line. */
const ANSWER = `
import { createRuntime } from './dist/index.js';
const runtime = await createRuntime({ model: ${JSON.stringify(model)}, log: (level, line) => level === 'info' && console.log(level, line) });
const ask = (fields) => runtime.createCompletion({ messages: [{ role: 'user', content: 'What is 45 - 5?' }], temperature: 0, ...fields });
const { choices: [free] } = await ask({});
console.log('free:', free.message.content);
const { choices: [held] } = await ask({ structured_outputs: { regex: '[0-9]{2}' } });
console.log('held:', held.message.content);
await runtime.close();
`;

beforeAll(() => {
  fs.cpSync(path.join(ROOT, 'dist'), path.join(work, 'dist'), { recursive: true });
  fs.copyFileSync(path.join(ROOT, 'package.json'), path.join(work, 'package.json'));
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(work, 'node_modules'), 'junction');
  fs.mkdirSync(path.dirname(grammar), { recursive: true });
  fs.mkdirSync(path.dirname(script));
  fs.copyFileSync(path.join(built, 'onpolicy.node'), path.join(native, 'Release', 'onpolicy.node'));
  fs.writeFileSync(path.join(native, 'onpolicy.sha256'), 'now');
});
afterAll(() => fs.rmSync(work, { recursive: true }));

/** Runs a program in a clone without the grammar engine whose build script is `build`; null: it has none. */
async function run(
  program: string,
  build: string | null,
  prepare = () => {},
): Promise<{ stdout: string; stderr: string }> {
  for (const file of [grammar, path.join(native, 'grammar.sha256'), script, path.join(work, 'builds.txt')])
    fs.rmSync(file, { force: true });
  if (build !== null) fs.writeFileSync(script, build);
  prepare();
  const file = path.join(work, 'program.mjs');
  fs.writeFileSync(file, program);
  const { code, signal, ...output } = await runNode([file], { cwd: work });
  expect({ code, signal, stderr: output.stderr }).toMatchObject({ code: 0, signal: null });
  return output;
}

const LINE = 'onpolicy: building the grammar engine, once; it takes about half a minute';

describe('without the grammar engine', () => {
  it('a request builds it, once, and says so', async () => {
    expect(await run(ASYNC, BUILDS)).toEqual({ stdout: 'true\ntrue\n', stderr: `${LINE}\n` });
    expect(fs.readFileSync(path.join(work, 'builds.txt'), 'utf8')).toBe('x');
  });

  it('answers come without it; structured output builds it, and the line goes to the log', async () => {
    const { stdout, stderr } = await run(ANSWER, BUILDS);
    expect(stderr).toBe('');
    const lines = stdout.split('\n').filter((line) => /^(free|held|info onpolicy):/.test(line));
    expect(lines).toEqual([
      expect.stringMatching(/^free: \S/),
      `info ${LINE}`,
      expect.stringMatching(/^held: \d\d$/),
    ]);
  });

  it('one of other sources counts as none', async () => {
    const stale = (): void => {
      fs.copyFileSync(path.join(built, 'grammar.node'), grammar);
      fs.writeFileSync(path.join(native, 'grammar.sha256'), 'before');
    };
    expect((await run(SYNC, BUILDS, stale)).stdout).toContain('NATIVE_UNAVAILABLE: no grammar engine');
    expect((await run(ASYNC, BUILDS, stale)).stderr).toBe(`${LINE}\n`);
  });

  it.each<[string, string, string | null, string]>([
    ['what cannot wait names the command', SYNC, BUILDS, `"node ${script}" builds it`],
    [
      'a build that fails says why',
      ASYNC,
      FAILS,
      `"node ${script}" could not build it: onpolicy: missing g++`,
    ],
    ['without sources it says what to do', ASYNC, null, 'reinstall the package'],
  ])('%s', async (_, program, build, cure) => {
    const { stdout } = await run(program, build);
    const platform = `${process.platform}-${process.arch}`;
    for (const line of stdout.trim().split('\n'))
      expect(line).toBe(
        `NATIVE_UNAVAILABLE: no grammar engine for ${platform}: looked for ${grammar}; ${cure}`,
      );
  });
});
