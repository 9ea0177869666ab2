import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { whyNoDevice } from './device.ts';

const why =
  (await whyNoDevice()) ?? (process.env['LD_PRELOAD'] ? null : 'only npm run check:gpu can lose a device');
const because = why ? ` (skipped: ${why})` : '';

it.skipIf(why)(`a GPU that is lost fails requests and training, and ends nothing else${because}`, () => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-lost-'));
  try {
    const program = path.join(import.meta.dirname, 'lost-device.mjs');
    const env = { ...process.env, LOST_DEVICE: path.join(home, 'lost') };
    const said = execFileSync(process.execPath, [program, home], { env, encoding: 'utf8' });
    expect(said.trim().split('\n')).toEqual([
      'before: The capital of Peru is Lima.',
      'before: done',
      'before: done',
      'lost: BACKEND_FAILED',
      'lost: BACKEND_FAILED',
      'lost: BACKEND_FAILED',
      'lost: BACKEND_FAILED',
      'closed: done',
      'closed: done',
      'closed: done',
      'on the CPU: The capital of Peru is Lima.',
      'end',
    ]);
  } finally {
    fs.rmSync(home, { recursive: true });
  }
});
