/**
 * The programs in the docs run as they stand there. The `js` blocks of a page, one after the other, are a program; a block that
 * imports a name again begins the next one. Copies of the embedded model stand in for the models that it names, a model that knows
 * the words of the program for those of embeddings and rankings, and a free port for 8080.
 */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort, packageFolder, ROOT, runNode } from './program.ts';

/** Expected output of each page's program. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  'README.md':
    /^The capital of Peru is Lima\.\n[\s\S]{20,}\{ name: 'Omar', age: 26, city: 'Delhi' \}\n(step \d+: mean reward -?\d+\n){30}$/,
  'docs/agents.md': /^user, choice, user, choice\n\[ 4, 4 \]\nsteps: step 2, 2 evaluations\n$/,
  'docs/batch.md': /^2 answers, 0 failed\n$/,
  'docs/choosing-a-model.md':
    /^(?=[\s\S]*model buffer size =)(?=[\s\S]*KV buffer size =)(?=[\s\S]*the cache holds 2048 tokens\n)/,
  'docs/operations.md':
    /^INVALID_REQUEST 400 temprature\n.*temprature.*temperature.*\nThe capital of Peru is Lima\.$/,
  'docs/getting-started.md':
    /^The capital of Peru is Lima\.\n[\s\S]{20,}\(stop\)\nOmar is 26\nIt is sunny in Paris\.\n(\w+: The capital of .*\n){3}(step \d+: -?\d+\n){10}$/,
  'docs/getting-started.md:2': /^(Omar Delhi\nNina Paris|Nina Paris\nOmar Delhi)\n$/,
  'docs/getting-started.md:3': /^The capital of Peru is Lima\.\n$/,
  'docs/getting-started.md:4': /^\{\n {2}content: 'It is rainy in Paris\.',\n/,
  'docs/moving.md': /^The capital of Peru is Lima\.\n.*weak.*\n$/,
  'docs/moving.md:2': /^(The capital of Peru is Lima\.\n){3}$/,
  'docs/serving.md:2': /^Your name is Omar\. [1-9]\d*\n$/,
  'docs/serving.md': /^http:\/\/127\.0\.0\.1:\d+\nThe capital of Peru is Lima\.\n$/,
  'docs/exactness.md': /^\{ accepted_prediction_tokens: \d+, rejected_prediction_tokens: \d+ \}\n$/,
  'docs/structured.md': /^Delhi\n\d+ tokens may come first\n$/,
  'docs/chat-formats.md':
    /^<\|user\|>Hello\n?<\|assistant\|>\n<\|user\|>Hello\n[\s\S]*'messages'[\s\S]*\nstring\n\[ 'Hi!<\/s>' \]\n$/,
  'docs/clients.md':
    /^The capital of Peru is Lima\.\n\[ 'One,', 'Red,' \]\nThe capital of Peru is Lima\.\nThe capital of Peru is Lima\. true\ntrue true\ntrue\n$/,
  'docs/training.md': /^(round \d: reward [\d.]+\n){3}step \d+\nloss -?\d\.\d+\n$/,
  'docs/decisions.md': /^[\d.e-]+ (billing|support) [\d.]+\n$/,
  'docs/vectors.md': /^0\.\d\d A guide to swimming in Lima\.\n(0\.\d\d A guide to .*\n){2}$/,
  'docs/store.md': /^[\d.]+\n0 checkpoints, a report of \d{5,} characters\n$/,
};

const SCRIPT = '../../scripts/docs/doc-programs.mjs';
const { docPrograms, localProgram } = (await import(SCRIPT)) as {
  docPrograms(): Map<string, string>;
  localProgram(program: string, local: { model: string; words: string; port: number }): string;
};
const WORDS = '../../examples/lib/word-vectors.mjs';
const { writeWordVectors } = (await import(WORDS)) as {
  writeWordVectors(file: string, texts: Iterable<string>): void;
};
const programs = docPrograms();

let folder: string;
beforeAll(() => {
  folder = packageFolder('onpolicy-docs-', ['openai', 'zod']);
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

it('every page with a program is listed', () => {
  expect([...programs.keys()].sort()).toEqual(Object.keys(PRINTS).sort());
});

it.each([
  ['Extraction', 20],
  ['A chat server', 15],
  ['An agent', 10],
])('%s takes at most %i lines', (name, most) => {
  const page = fs.readFileSync(path.join(ROOT, 'docs', 'getting-started.md'), 'utf8');
  const [, block] = new RegExp(`^\\*\\*${name}\\*\\*[\\s\\S]*?\`\`\`js\\n([\\s\\S]*?)\`\`\``, 'm').exec(
    page,
  )!;
  expect(block!.trimEnd().split('\n').length).toBeLessThanOrEqual(most);
});

it.each([...programs])('%s', async (page, program) => {
  const words = path.join(folder, 'words.gguf');
  writeWordVectors(words, [program]);
  const source = localProgram(program, { model: './downloaded.gguf', words, port: await freePort() });
  for (const [, name] of source.matchAll(/'(\.\/[^']+\.gguf)'/g))
    fs.copyFileSync(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'), path.join(folder, name!));
  const file = path.join(folder, `${path.basename(page).replace(/\W/g, '-')}.mjs`);
  fs.writeFileSync(file, source);
  const outcome = await runNode([file], { cwd: folder, timeoutMs: 120_000 });
  expect(outcome.stderr).toBe(''); // the message has all of it
  expect(outcome, outcome.stdout).toMatchObject({ code: 0, signal: null });
  expect(outcome.stdout).toMatch(PRINTS[page]!);
});
