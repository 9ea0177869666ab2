/** Every file in examples/ runs against the built package and prints what its first line promises. */
import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { ROOT, runProgram } from './program.ts';

const folder = path.join(ROOT, 'examples');

/** What each example prints. Sampled texts differ between processors, so only their form is given. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  '01-hello.ts': /^The capital of Peru is Lima\.\n\d+ tokens read, 10 generated\n$/,
  '02-stream.ts': /^[A-Z][\s\S]{20,}\n\d+ tokens\n$/,
  '03-logprobs.ts':
    /^"4" {2}probability 0\.\d\d {2}\("4" .*\n"0" .*\n"<\|im_end\|>" {2}probability 1\.00 .*\n$/,
  '04-many-at-once.ts':
    /^(The capital of (Japan is Tokyo|Egypt is Cairo|Spain is Madrid|Austria is Vienna)\.\n){4}(\d: .{20,}\n){4}\d+ tokens in \d+ steps\n$/,
  '05-abort.ts': /^the signal ended it: ABORTED\nleft the stream after: [\s\S]{41,120}\n$/,
  '06-reinforcement-learning.ts':
    /^before: .*\nround 1: reward 0\.[0-4]\d\n(round \d+: reward \d\.\d\d\n)+round 24: reward (0\.9\d|1\.00)\nafter: Once upon a time, .* wolf named .*\n$/,
};

/** Examples that take more than a screen. */
const LONG: Readonly<Record<string, number>> = { '06-reinforcement-learning.ts': 80 };

describe('examples', () => {
  const files = fs.readdirSync(folder).filter((file) => file.endsWith('.ts'));

  it('are all listed here', () => {
    expect(files).toEqual(Object.keys(PRINTS));
  });

  it.each(files)('%s', async (file) => {
    const source = fs.readFileSync(path.join(folder, file), 'utf8');
    expect(source.trimEnd().split('\n').length, 'lines').toBeLessThan(LONG[file] ?? 30);
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    });
    const outcome = await runProgram(outputText, 'mjs', { timeoutMs: 170_000 });
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(outcome.stdout).toMatch(PRINTS[file]!);
  });
});
