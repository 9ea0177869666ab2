/** Every file in examples/ runs unchanged against the built package, and prints what its first line promises. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, runNode } from './program.ts';

const folder = path.join(ROOT, 'examples');

/** An example's input and output. Sampled texts differ between processors, so only their form is checked. */
type Example = { readonly prints: RegExp; readonly input?: string; readonly mostLines?: number };
const EXAMPLES: Readonly<Record<string, Example>> = {
  '01-hello.mjs': { prints: /^The capital of Peru is Lima\.\n\d+ tokens read, 10 generated\n$/ },
  '02-stream.mjs': { prints: /^[A-Z][\s\S]{20,}\n\d+ tokens\n$/ },
  '03-chat.mjs': {
    input: 'My name is Omar.\nWhat is my name?\n',
    prints: /^Say something.*\n> .*Omar.*\n> Your name is Omar\.\n> $/,
  },
  '04-json-schema.mjs': { prints: /^Omar, 26, from Delhi\n$/ },
  '05-tools.mjs': { prints: /^get_weather\(\{"city": ?"Paris"\}\)\nIt is sunny in Paris\.\n$/ },
  '06-many-at-once.mjs': {
    prints:
      /^(The capital of (Japan is Tokyo|Egypt is Cairo|Spain is Madrid|Austria is Vienna)\.\n){4}(\d: .{20,}\n){4}\d+ tokens in \d+ steps\n$/,
  },
  '07-logprobs.mjs': {
    prints: /^"4" {2}probability 0\.\d\d {2}\("4" .*\n"0" .*\n"<\|im_end\|>" {2}probability 1\.00 .*\n$/,
  },
  '08-abort.mjs': { prints: /^the signal ended it: ABORTED\nleft the stream after: [\s\S]{41,400}\n$/ },
  '09-reinforcement-learning.mjs': {
    mostLines: 80,
    prints:
      /^before: .*\nround 1: reward 0\.[0-4]\d\n(round \d+: reward \d\.\d\d\n)+round 24: reward (0\.9\d|1\.00)\nafter: Once upon a time, .* wolf named .*\n$/,
  },
  '10-agent.mjs': {
    mostLines: 100,
    prints: /^step 0: 0\.[0-2]\d right\n(step \d+: \d\.\d\d right\n)*step \d+: (0\.9[5-9]|1\.00) right\n$/,
  },
  '11-picture.mjs': {
    prints:
      /^What is in the picture\? a purple triangle at the top right, a green square at the bottom left and a yellow square at the bottom right\nHow many shapes are there\? 3\nWhere are the shapes\? at the top right, at the bottom left and at the bottom right\n$/,
  },
  '12-judge.mjs': {
    mostLines: 100,
    prints:
      /^step 0: the judge says 0\.[0-6]\d, 0\.[0-5]\d are right\n(step .*\n)*step \d+: the judge says (0\.9[5-9]|1\.00), (0\.[89]\d|1\.00) are right\n$/,
  },
  '13-guessing-game.mjs': {
    mostLines: 90,
    prints: /^step 0: 0\.[0-2]\d won\n(step \d+: \d\.\d\d won\n)*step \d+: (0\.[5-9]\d|1\.00) won\n$/,
  },
  '14-batch.mjs': { mostLines: 60, prints: /^ended after 12 rows\n24 answered, 0 failed\n\d+ right\n$/ },
  '15-rerank.mjs': {
    prints:
      /^0\.[5-9]\d\d {2}The capital of Peru is Lima\.\n0\.[2-4]\d\d {2}The capital of Spain is Madrid\.\n-?0\.[01]\d\d {2}Bananas are yellow\.\nLima: 0\.[3-9]\d\d as a city, -?0\.[01]\d\d as a fruit\n$/,
  },
  '16-references.mjs': {
    mostLines: 120,
    prints:
      /^step 0: 0\.[01]\d right, \d\.\d calls\n(step \d+: .*\n)*step \d+: (0\.9[5-9]|1\.00) right, 3\.\d calls\n$/,
  },
  '17-distillation.mjs': {
    mostLines: 90,
    prints: /^teacher (0\.9\d|1\.00); student 0\.[0-2]\d, off policy 0\.\d\d, on policy (0\.[89]\d|1\.00)\n$/,
  },
  '18-decide.mjs': {
    mostLines: 40,
    prints:
      /^(100|9[5-9]) of 100 right in \d+ ms\n\d+ tokens read, \d+ computed, \d+ from the cache\nat least [01]\.\d{3} of the probability is on yes and no\nthe opposite of hot is cold\n$/,
  },
  '19-learn-decisions.mjs': {
    mostLines: 48,
    prints:
      /^before: accuracy 0\.[0-6]\d, .*\nafter: accuracy 0\.[78]\d, Brier 0\.[234]\d, calibration error 0\.\d\d\nkept the weights of epoch \d+\n$/,
  },
};

let workplace: string;
beforeAll(() => {
  workplace = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-examples-'));
});
afterAll(() => fs.rmSync(workplace, { recursive: true, force: true }));

describe('examples', () => {
  it('are all listed here', () => {
    expect(fs.readdirSync(folder).filter((file) => file.endsWith('.mjs'))).toEqual(Object.keys(EXAMPLES));
  });

  it.each(Object.entries(EXAMPLES))('%s', async (name, { prints, input = '', mostLines = 34 }) => {
    const file = path.join(folder, name);
    expect(fs.readFileSync(file, 'utf8').trimEnd().split('\n').length, 'lines').toBeLessThan(mostLines);
    const outcome = await runNode([file], { cwd: workplace, input, timeoutMs: 170_000 });
    expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(outcome.stdout).toMatch(prints);
  });
});
