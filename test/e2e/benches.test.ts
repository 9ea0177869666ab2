/** Suites of `npm run bench`, which reach into parts of the library that no user sees: each still measures something. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { engineSources } from '../engine-sources.ts';
import { ROOT } from './program.ts';

const TINY = path.join(ROOT, 'models', 'onpolicy-tiny.gguf');
/** The words of each command, and the fewest rows that it gives. */
const SUITES: Record<string, number> = {
  'structured --only masks,vocabulary': 2,
  [`structured --only throughput --model ${TINY}`]: 3,
  [`decode --only onpolicy,bare --sequences 2 --model ${TINY}`]: 4,
  [`decide --only onpolicy --requests 5 --lengths 200 --model ${TINY}`]: 10,
  'request --only fields': 8,
  'engine --only step-cost': 4,
  sampler: 4,
  template: 2,
  protocol: 3,
};
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-benches-'));

it.skipIf(engineSources() === null).each(Object.entries(SUITES))(
  '%s',
  async (words, rows) => {
    const file = path.join(folder, 'figures.json');
    const flags = ['--rounds', '1', '--no-save', '--no-wait', '--json', file];
    await promisify(execFile)(process.execPath, ['bench/run.mjs', ...words.split(' '), ...flags], {
      cwd: ROOT,
    });
    const { results } = JSON.parse(fs.readFileSync(file, 'utf8'));
    expect(results.length).toBeGreaterThanOrEqual(rows);
    for (const { name, median } of results) expect(median, name).toBeGreaterThan(0);
  },
  300_000,
);
