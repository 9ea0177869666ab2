/** The name of an architecture -> a tiny random model of it, which scripts/make-architecture.mjs writes once for all tests. */
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const program = path.join(root, 'scripts/make-architecture.mjs');
const parts = path.join(root, 'scripts/architectures');

/** Those that answer, as scripts/architectures/table.mjs has them. */
export const ARCHITECTURES = (
  (await import(path.join(parts, 'table.mjs'))) as { ARCHITECTURE_NAMES: readonly string[] }
).ARCHITECTURE_NAMES;

/** Paths of models, by name. They stay for the next tests, until what writes them is another. */
export function architectureFiles(names: readonly string[], type = 'f32'): Record<string, string> {
  const sources = [program, ...fs.readdirSync(parts).map((name) => path.join(parts, name))];
  const hash = crypto.createHash('sha256');
  for (const source of sources) hash.update(fs.readFileSync(source));
  const folder = path.join(os.tmpdir(), `onpolicy-architectures-${hash.digest('hex').slice(0, 12)}`);
  const args = [program, '--out', folder, '--name', names.join(), '--type', type];
  const lines = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim().split('\n');
  return Object.fromEntries(names.map((name, i) => [name, lines[i]!]));
}
