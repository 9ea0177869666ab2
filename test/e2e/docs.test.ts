/**
 * The programs in the docs run as they stand there. The `js` blocks of a page, one after the other, are one program. Copies
 * of the embedded model stand in for the models that it names, and a free port for 8080.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort, ROOT, runNode } from './program.ts';

/** What the program of each page prints. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  'README.md':
    /^The capital of Peru is Lima\.\n[\s\S]{20,}\{ name: 'Omar', age: 26, city: 'Delhi' \}\n\{[\s\S]*'train\/reward'/,
  'docs/agents.md': /^user, choice, user, choice\n\[ 4, 4 \]\nsteps: step 2, 2 evaluations\n$/,
  'docs/batch.md': /^2 answers, 0 failed\n$/,
  'docs/choosing-a-model.md':
    /^(?=[\s\S]*model buffer size =)(?=[\s\S]*KV buffer size =)(?=[\s\S]*the cache holds 2048 tokens\n)/,
  'docs/errors.md':
    /^INVALID_REQUEST 400 temprature\n.*temprature.*temperature.*\nThe capital of Peru is Lima\.$/,
  'docs/from-node-llama-cpp.md': /^The capital of Peru is Lima\.\n.*weak.*\n$/,
  'docs/from-vllm.md': /^(The capital of Peru is Lima\.\n){3}$/,
  'docs/growing.md': /^Your name is Omar\. [1-9]\d*\n$/,
  'docs/http.md': /^http:\/\/127\.0\.0\.1:\d+\nThe capital of Peru is Lima\.\n$/,
  'docs/speculation.md': /^\{ accepted_prediction_tokens: \d+, rejected_prediction_tokens: \d+ \}\n$/,
  'docs/structured.md': /^Delhi\n\d+ tokens may come first\n$/,
  'docs/templates.md':
    /^<\|user\|>Hello\n?<\|assistant\|>\n<\|user\|>Hello\n[\s\S]*'messages'[\s\S]*\nstring\n\[ 'Hi!<\/s>' \]\n$/,
  'docs/wires.md':
    /^The capital of Peru is Lima\.\n\[ 'One,', 'Red,' \]\nThe capital of Peru is Lima\.\nThe capital of Peru is Lima\. true\ntrue true\n$/,
  'docs/training.md': /^(round \d: reward [\d.]+\n){3}step \d+\nloss -?\d\.\d+\n$/,
  'docs/store.md': /^[\d.]+\n0 checkpoints, a report of \d{5,} characters\n$/,
};

const SCRIPT = '../../scripts/doc-programs.mjs';
const { docPrograms, localProgram } = (await import(SCRIPT)) as {
  docPrograms(): Map<string, string>;
  localProgram(program: string, local: { model: string; port: number }): string;
};
const programs = docPrograms();

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-docs-'));
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(modules);
  fs.symlinkSync(ROOT, path.join(modules, 'onpolicy'), 'junction');
  for (const name of ['openai', 'zod'])
    fs.symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name), 'junction');
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

it('every page with a program is listed', () => {
  expect([...programs.keys()].sort()).toEqual(Object.keys(PRINTS).sort());
});

it.each([...programs])('%s', async (page, program) => {
  const source = localProgram(program, { model: './downloaded.gguf', port: await freePort() });
  for (const [, name] of source.matchAll(/'(\.\/[^']+\.gguf)'/g))
    fs.copyFileSync(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'), path.join(folder, name!));
  const file = path.join(folder, `${path.basename(page, '.md')}.mjs`);
  fs.writeFileSync(file, source);
  const outcome = await runNode([file], { cwd: folder, timeoutMs: 120_000 });
  expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(outcome.stdout).toMatch(PRINTS[page]!);
});
