/** The name of an architecture -> a tiny random model of it, which scripts/make/make-architecture.mjs writes once for all tests. */
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isEngineSince, openLibraries } from '../../src/engine/native/index.ts';

const root = path.resolve(import.meta.dirname, '../..');
const program = path.join(root, 'scripts/make/make-architecture.mjs');
const parts = path.join(root, 'scripts/make/architectures');

type Measured = { readonly differences: readonly string[] };
/** Scripts are plain JavaScript: what tests use of them, typed. */
type Scripts = {
  'table.mjs': {
    ARCHITECTURE_NAMES: readonly string[];
    KNOWN_SINCE: Readonly<Record<string, string>>;
  };
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

/** Names of the architectures that answer requests. */
const table = await scripts('table.mjs');
export const ARCHITECTURES = table.ARCHITECTURE_NAMES;

/** Returns those of them that the installed release of the engine knows. */
export async function knownArchitectures(): Promise<string[]> {
  await openLibraries(false);
  return ARCHITECTURES.filter((name) => isEngineSince(table.KNOWN_SINCE[name] ?? '0'));
}

/** The engine's loader is asked which tensors a model has. */
const ENGINE = `@node-llama-cpp/${process.platform === 'win32' ? 'win' : process.platform === 'darwin' ? 'mac' : process.platform}-${process.arch}`;

/** Returns the release of the installed engine. */
function engineRelease(): string {
  const folder = path.join(root, 'node_modules', ENGINE);
  const manifest = path.join(fs.existsSync(folder) ? folder : `${folder}-metal`, 'package.json');
  return (JSON.parse(fs.readFileSync(manifest, 'utf8')) as { version: string }).version;
}

/** Paths of models, by name. They are kept for later tests until the program that writes them, or the engine's release, changes. */
export function architectureFiles(names: readonly string[], type = 'f32'): Record<string, string> {
  const sources = [program, ...fs.readdirSync(parts).map((name) => path.join(parts, name))];
  const hash = crypto.createHash('sha256');
  for (const source of sources) hash.update(fs.readFileSync(source));
  hash.update(engineRelease());
  const folder = path.join(os.tmpdir(), `onpolicy-architectures-${hash.digest('hex').slice(0, 12)}`);
  const args = [program, '--out', folder, '--name', names.join(), '--type', type];
  const lines = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim().split('\n');
  return Object.fromEntries(names.map((name, i) => [name, lines[i]!]));
}
