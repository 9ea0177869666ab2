/** Damaged files of models, projectors, adapters -> errors: none ends or hangs the process. ONPOLICY_FUZZ_SEED: other ones than always; `node scripts/fuzz/fuzz-files.mjs` damages as many as wanted. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { whyNoOnnx } from '../../models/formats/engines.ts';
import { fuzzScript } from './files.ts';

const isBuilt = fs.existsSync(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)));

// How many, and which share of them must work: most damage is deeper than the header.
it
  .skipIf(!isBuilt)
  .each([
    ['text', 300, 0.1],
    ['projector', 100, 0.1],
    ['adapter', 200, 0.1],
    ['trainer', 100, 0.1],
    ['peft', 100, 0.1],
    ...(whyNoOnnx() === null ? [['onnx', 100, 0.1] as const] : []),
  ] as const)(
  'of kind %s, %d of them, and the undamaged ones are served',
  async (kind, count, share) => {
    const { fuzz } = await fuzzScript('fuzz.mjs');
    const faults: string[] = [];
    const first = Number(process.env['ONPOLICY_FUZZ_SEED'] ?? 1);
    const totals = await fuzz({ kind, first, count, processes: 2, say: (line) => faults.push(line) });
    expect(faults).toEqual([]);
    expect(totals).toMatchObject({ deaths: 0, hangs: 0, foreign: 0, refused: 0 });
    expect(totals.accepted).toBeGreaterThan(count * share);
  },
  300_000,
);
