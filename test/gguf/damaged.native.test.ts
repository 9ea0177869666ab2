/** Damaged text models -> errors: none ends or hangs the process. ONPOLICY_FUZZ_SEED: other ones than always. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { fuzzScript } from './files.ts';

const COUNT = 2000;
const isBuilt = fs.existsSync(fileURLToPath(new URL('../../dist/index.js', import.meta.url)));

it.skipIf(!isBuilt)(
  `${COUNT} of them, and the undamaged ones are served`,
  async () => {
    const { fuzz } = await fuzzScript('fuzz.mjs');
    const faults: string[] = [];
    const first = Number(process.env['ONPOLICY_FUZZ_SEED'] ?? 1);
    const totals = await fuzz({
      kind: 'text',
      first,
      count: COUNT,
      processes: 2,
      say: (line) => faults.push(line),
    });
    expect(faults).toEqual([]);
    expect(totals).toMatchObject({ deaths: 0, hangs: 0, foreign: 0, refused: 0 });
    expect(totals.accepted).toBeGreaterThan(COUNT / 10); // most damage is deeper than the header
  },
  300_000,
);
