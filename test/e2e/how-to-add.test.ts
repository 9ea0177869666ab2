/** "How to add" in docs/architecture.md is true: a toy of each row, in the files that the row names, compiles and runs. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyToy, readToys } from '../how-to-add/toys.ts';

type Report = {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
};

const ROOT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const toys = readToys();

/** Row -> the files that it names. A name that ends with a slash stands for one file below that folder. */
const rows = new Map<string, readonly string[]>();
const text = fs.readFileSync(path.join(ROOT, 'docs/architecture.md'), 'utf8');
const [table] = /\| what \|[\s\S]*?(?=\n\n|$)/.exec(text.slice(text.indexOf('## How to add')))!;
for (const line of table.split('\n').slice(2)) {
  const [, what, files] = line.split(/(?<!\\)\|/);
  rows.set(
    what!.trim(),
    [...files!.matchAll(/`([^` ]*\/[^` ]*)`/g)].map(([, name]) => name!),
  );
}

describe('the table', () => {
  it('has a toy of each row', () => {
    expect(toys.map(({ row }) => row).sort()).toEqual([...rows.keys()].sort());
  });

  it.each([...rows])('%s: names at most eight files, which exist', (_, names) => {
    expect(names.length).toBeLessThanOrEqual(8);
    for (const name of names) expect(fs.existsSync(path.join(ROOT, name)), name).toBe(true);
  });

  it('names at most four files for an endpoint, and three for a method of every service', () => {
    expect(rows.get('an endpoint')!.length).toBeLessThanOrEqual(4);
    expect(rows.get('a method of every service')!.length).toBeLessThanOrEqual(3);
  });

  it.each(toys.map((toy) => [toy.row, toy] as const))(
    '%s: the toy changes what the row names',
    (row, toy) => {
      const named = rows.get(row)!;
      const left = [...toy.files.keys()].filter((file) => !named.includes(file));
      const below = named.filter((name) => name.endsWith('/')).sort((a, b) => b.length - a.length);
      for (const folder of below) {
        const at = left.findIndex((file) => file.startsWith(folder));
        expect(at, `a file below ${folder}`).toBeGreaterThanOrEqual(0);
        left.splice(at, 1);
      }
      expect(left).toEqual([]);
      expect(named.filter((name) => !name.endsWith('/') && !toy.files.has(name))).toEqual([]);
    },
  );
});

// A checkout that never built its addons has no objects to begin with.
describe.skipIf(!fs.existsSync(path.join(ROOT, 'native/build/Makefile')))('all toys together', () => {
  const tree = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-add-'));
  const command = async (file: string, ...args: string[]): Promise<void> => {
    const { stdout } = await run(file, args, { cwd: tree, maxBuffer: 2 ** 26 }).catch(
      (error: Error & { stdout?: string }) => {
        throw new Error(`${error.message}\n${error.stdout}`);
      },
    );
    process.stdout.write(stdout);
  };
  const tests = [
    ...new Set(
      toys.flatMap(({ files, tests: more }) => [
        ...[...files.keys()].filter((file) => file.endsWith('.test.ts')),
        ...more,
      ]),
    ),
  ];

  beforeAll(() => {
    // With the objects of the last build and their times, so that only what a toy touches is compiled.
    for (const name of ['src', 'native', 'test', 'scripts', 'docs', 'models'])
      fs.cpSync(path.join(ROOT, name), path.join(tree, name), {
        recursive: true,
        preserveTimestamps: true,
        filter: (file) => path.basename(file) !== 'decoder',
      });
    for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'vitest.config.ts'])
      fs.copyFileSync(path.join(ROOT, name), path.join(tree, name));
    fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(tree, 'node_modules'));
    for (const toy of toys) applyToy(tree, toy);
    const checked = { extends: './tsconfig.json', include: ['src', ...tests] };
    fs.writeFileSync(path.join(tree, 'tsconfig.toys.json'), JSON.stringify(checked));
  });
  afterAll(() => fs.rmSync(tree, { recursive: true, force: true }));

  it('compile and run', { timeout: 1_500_000 }, async () => {
    const typescript = async (): Promise<void> => {
      await command(process.execPath, 'scripts/build-protocol.mjs');
      await command(process.execPath, 'node_modules/typescript/bin/tsc', '-p', 'tsconfig.toys.json');
    };
    const jobs = `-j${os.availableParallelism()}`;
    const outcomes = await Promise.allSettled([
      typescript(),
      command('make', '-s', jobs, 'BUILDTYPE=Release', '-C', 'native/build'),
    ]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    const report = path.join(tree, 'report.json');
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '-t', 'toy', '--reporter=json'];
    await command(process.execPath, ...vitest, `--outputFile=${report}`, ...tests).catch(() => {}); // the report says why
    const { testResults } = JSON.parse(fs.readFileSync(report, 'utf8')) as Report;
    const ran = testResults.flatMap(({ name, message, assertionResults }) =>
      assertionResults.length === 0
        ? [`${name}: ${message}`]
        : assertionResults
            .filter(({ status }) => status !== 'skipped')
            .map((one) => `${one.status}: ${one.fullName} ${one.failureMessages.join(' ')}`),
    );
    expect(ran.filter((line) => !line.startsWith('passed: '))).toEqual([]);
    for (const { row, proof } of toys)
      expect(
        ran.filter((line) => line.includes(proof)),
        row,
      ).not.toEqual([]);
  });
});
