/** Models of architectures -> answers as a bare loop of the engine has them, and the rows of docs/choosing-a-model.md. ONPOLICY_ARCHITECTURES: their names, or `all`. */
import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';
import { ARCHITECTURES, architectureFiles, knownArchitectures, scripts } from './files.ts';

/** Every kind of layer and of cache. */
const KINDS = [
  'llama',
  'gemma3',
  'gemma4',
  'gpt-oss',
  'deepseek2',
  'qwen35',
  'qwen35moe',
  'lfm2',
  'kimi-linear',
  'nemotron_h',
  'falcon-h1',
  'mamba',
  'rwkv7',
];
const asked = process.env['ONPOLICY_ARCHITECTURES'];
const names = asked === 'all' ? await knownArchitectures() : (asked?.split(',') ?? KINDS);
const missing = whyNoBareEngine();
if (missing !== null) process.stderr.write(`skipped: architectures beside a bare loop: ${missing}\n`);

const { rowsIn, rowOf } = await scripts('page.mjs');
const rows = rowsIn(
  fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/choosing-a-model.md'), 'utf8'),
);
let files: Record<'f32' | 'q8_0', Record<string, string>>;
beforeAll(() => {
  files = { f32: architectureFiles(names), q8_0: architectureFiles(names, 'q8_0') };
}, 240_000);

it('the page has a row of each', () => {
  expect(Object.keys(rows)).toEqual(ARCHITECTURES);
});

it.skipIf(missing !== null).each(names)(
  '%s',
  async (name) => {
    const { measureArchitecture } = await scripts('measure.mjs');
    const result = await measureArchitecture(name, { f32: files.f32[name]!, q8_0: files.q8_0[name]! });
    expect(result.differences).toEqual([]);
    expect(rowOf(name, result)).toBe(rows[name]);
  },
  120_000,
);
