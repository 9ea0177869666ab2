/** The name of an architecture -> a tiny random model of it, which scripts/make-architecture.mjs writes once for all tests. */
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const program = path.join(root, 'scripts/make-architecture.mjs');
const parts = path.join(root, 'scripts/architectures');

type Measured = { readonly differences: readonly string[] };
/** Scripts are plain JavaScript: what tests use of them, typed. */
type Scripts = {
  'table.mjs': { ARCHITECTURE_NAMES: readonly string[] };
  'page.mjs': {
    rowsIn(text: string): Record<string, string>;
    rowOf(name: string, result: Measured): string;
  };
  'measure.mjs': {
    measureArchitecture(name: string, files: { f32: string; q8_0: string }): Promise<Measured>;
  };
};

export async function scripts<Name extends keyof Scripts>(name: Name): Promise<Scripts[Name]> {
  return (await import(path.join(parts, name))) as Scripts[Name];
}

/** Those that answer. */
export const { ARCHITECTURE_NAMES: ARCHITECTURES } = await scripts('table.mjs');

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
