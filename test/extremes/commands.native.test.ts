/**
 * Flags and words of the command from the extremes -> exit codes: each line runs, or is refused by an error of ours with its code, in
 * few words. `ONPOLICY_DRAWS=2000000` draws more.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serve } from '../../src/apps/cli/serve.ts';
import { OnpolicyError } from '../../src/errors.ts';
import { command } from '../apps/cli/terminal.ts';
import { countOf } from '../counts.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { EXTREMES } from './values.ts';

const LINES = Math.ceil(countOf('ONPOLICY_DRAWS', 100_000) / 1000);
const MOST_MS = 30_000;
const LONGEST_MESSAGE = 2000;

/** Arguments of each command. One or two of the values are replaced. */
const COMMANDS: readonly (readonly [words: readonly string[], flags: Readonly<Record<string, string>>])[] = [
  [
    ['complete', 'Hi'],
    { model: 'onpolicy-tiny', system: 's', 'max-tokens': '2', temperature: '1', 'top-p': '0.9', seed: '1' },
  ],
  [['chat'], { 'max-tokens': '2', temperature: '0', system: 's' }],
  [['models'], { after: '00000000-0000-4000-8000-000000000000', limit: '3', order: 'asc' }],
  [['models', 'show', 'm'], {}],
  [['models', 'delete', 'nobody'], {}],
  [['checkpoints', 'm'], { limit: '3', order: 'desc' }],
  [['checkpoints', 'm', 'delete', '1'], {}],
  [['checkpoints', 'm', 'prune'], { keep: '1', metric: 'train/reward', goal: 'max' }],
  [['report', 'm'], { out: 'page.html' }],
  [['report', 'm'], { split: 'val' }],
  [['bench'], { sequences: '1' }],
  [
    ['serve'],
    {
      port: '0',
      host: '127.0.0.1',
      token: 't',
      'token-file': 'tokens',
      model: 'onpolicy-tiny',
      config: 'config.json',
      'access-log': 'log',
    },
  ],
];
const SHARED = { 'hub-token': 't', 'hub-folder': 'hub', 'hub-endpoint': 'http://127.0.0.1:1' };

/** Texts as a shell could pass them: it has neither NUL nor halves of characters. */
const VALUES = EXTREMES.filter(({ isJson, isLarge }) => isJson && !isLarge)
  .map(({ make }) => make())
  .filter((value) => typeof value === 'string' || typeof value === 'number')
  .map((value) => Buffer.from(String(value)).toString().replaceAll('\0', ''));

const before = process.cwd();
let folder: string;
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-commands-'));
  const inner = path.join(folder, 'a', 'b', 'c'); // where `../../x` leads is ours, too
  fs.mkdirSync(inner, { recursive: true });
  process.chdir(inner);
  fs.writeFileSync('tokens', 'secret\n');
  fs.writeFileSync('config.json', '{}');
  expect(await command(['models', 'create', 'onpolicy-tiny', '--name', 'm'])).toMatchObject({ exitCode: 0 });
});
afterAll(() => {
  process.chdir(before);
  fs.rmSync(folder, { recursive: true, force: true });
});

/** The error of a line; null: there was none. */
async function errorOf(line: readonly string[]): Promise<{ code?: unknown; message?: unknown } | null> {
  if (line[0] !== 'serve') {
    const { exitCode, errors } = await command(line, 'Hi\n');
    if (exitCode === 0) return null;
    return (JSON.parse(errors.trim().split('\n').at(-1)!) as { error: object }).error;
  }
  try {
    const streams = { input: Readable.from([]), output: new PassThrough(), errors: new PassThrough() };
    await serve(line.slice(1), streams, AbortSignal.abort());
    return null;
  } catch (error) {
    return error instanceof OnpolicyError ? error : { code: 'FAILED', message: String(error) };
  }
}

it('takes or refuses whatever is typed', { timeout: 120_000 + 400 * LINES }, async () => {
  const next = randomNumbers(11);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const problems: string[] = [];
  const counts = { lines: 0, refused: 0 };
  for (; counts.lines < LINES; counts.lines++) {
    const [words, own] = pick(COMMANDS);
    const flags: Record<string, string> = { ...SHARED, ...own };
    const places = [...Object.keys(flags), ...words.slice(1).map((_, i) => i + 1)];
    const line = [...words];
    for (const place of next() < 0.5 ? [pick(places)] : [pick(places), pick(places)])
      if (typeof place === 'number') line[place] = pick(VALUES);
      else flags[place] = pick(VALUES);
    for (const [name, value] of Object.entries(flags)) line.push(`--${name}=${value}`);
    line.push('--json', '--offline');
    const startMs = performance.now();
    const error = await errorOf(line);
    const ms = performance.now() - startMs;
    counts.refused += Number(error !== null);
    const isOurs =
      error === null ||
      (typeof error.code === 'string' &&
        !['FAILED', 'BACKEND_FAILED'].includes(error.code) &&
        /^[A-Z_]+$/.test(error.code));
    const isShort = error === null || String(error.message).length <= LONGEST_MESSAGE;
    if (!isOurs || !isShort || ms > MOST_MS || /^E[A-Z]+$/.test(String(error?.code)))
      problems.push(
        `${line.join(' ').slice(0, 300)}: ${String(error?.code)} ${String(error?.message).slice(0, 200)}, ${ms.toFixed(0)} ms`,
      );
  }
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  expect(problems.slice(0, 20), `${problems.length} of ${LINES}`).toEqual([]);
});
