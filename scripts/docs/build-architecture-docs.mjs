// The engine's architectures -> docs/choosing-a-model.md: what the library does with a random model of each. --names qwen35,gemma4 measures
// these and keeps the other rows, as those are kept that the installed engine does not know. Exit code 1: answers differ from those of a bare loop.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isEngineSince, openLibraries } from '../../dist/engine/native/index.js';
import { measureArchitecture } from '../make/architectures/measure.mjs';
import { rowOf, rowsIn, withRows } from '../make/architectures/page.mjs';
import { ARCHITECTURE_NAMES, KNOWN_SINCE } from '../make/architectures/table.mjs';
import { writeArchitecture } from '../make/architectures/write.mjs';

const { values } = parseArgs({ options: { names: { type: 'string' } } });
const page = fileURLToPath(new URL('../../docs/choosing-a-model.md', import.meta.url));
const text = fs.readFileSync(page, 'utf8');
const known = rowsIn(text);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-architectures-'));
const rows = [];
await openLibraries(false);
for (const name of ARCHITECTURE_NAMES) {
  const isAsked = values.names?.split(',').includes(name) ?? true;
  const isKnown = isEngineSince(KNOWN_SINCE[name] ?? '0');
  if (!(isAsked && isKnown) && known[name]) {
    rows.push(known[name]);
    continue;
  }
  const files = { f32: path.join(folder, 'f32.gguf'), q8_0: path.join(folder, 'q8_0.gguf') };
  for (const [type, file] of Object.entries(files)) await writeArchitecture(file, { name, type });
  const result = await measureArchitecture(name, files);
  rows.push(rowOf(name, result));
  process.stdout.write(`${rows.at(-1)}\n`);
  for (const difference of result.differences) process.stdout.write(`  ${difference}\n`);
  if (result.differences.length > 0) process.exitCode = 1;
}
fs.rmSync(folder, { recursive: true });
fs.writeFileSync(page, withRows(text, rows));
