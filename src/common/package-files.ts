/** The name of a file of this package -> its path, and the package's version. The same from `src` and from `dist`. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OnpolicyError } from '../errors.ts';

/** Folder of the package: two levels above this file. In the output of a bundler it is another folder, or the URL is missing. */
const ROOT = path.resolve(
  (import.meta.url as string | undefined) ? fileURLToPath(import.meta.url) : '.',
  '../../..',
);

let known: string | null | undefined;

/**
 * Returns the path of a file such as `models/onpolicy-tiny.gguf`. Workers run from `dist`, because not every supported Node runs TypeScript
 * in a worker.
 */
export function packageFile(name: string): string {
  return path.join(ROOT, name);
}

/** Returns the version, or `unknown` if a bundler left the manifest out. */
export function packageVersion(): string {
  known ??= readVersion();
  return known ?? 'unknown';
}

/** @throws OnpolicyError `NATIVE_UNAVAILABLE` if this code is in the output of a bundler without the files that it needs */
export function requirePackage(): void {
  known ??= readVersion();
  if (known !== null) return;
  throw new OnpolicyError(
    'NATIVE_UNAVAILABLE',
    'onpolicy was bundled, so its addon, models and workers cannot be found: mark the package as external. docs/packaging.md#bundlers-and-single-executables has the line for each bundler',
  );
}

function readVersion(): string | null {
  try {
    const text = fs.readFileSync(packageFile('package.json'), 'utf8');
    const { name, version } = JSON.parse(text) as { name?: string; version?: string };
    return name === 'onpolicy' && version ? version : null;
  } catch {
    return null;
  }
}
