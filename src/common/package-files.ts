/** The name of a file of this package -> where it lies; and the package's version. The same from `src` and from `dist`. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OnpolicyError } from '../errors.ts';

/** Two folders above this file. A bundler moves the code and leaves the files: then it is any folder, or the URL is missing. */
const ROOT = path.resolve(
  (import.meta.url as string | undefined) ? fileURLToPath(import.meta.url) : '.',
  '../../..',
);

let known: string | null | undefined;

/** The path of a file, as `models/onpolicy-tiny.gguf`. Programs are those in `dist`: a worker cannot run from TypeScript on every supported Node. */
export function packageFile(name: string): string {
  return path.join(ROOT, name);
}

/** The version; `unknown` where a bundler left the manifest behind. */
export function packageVersion(): string {
  known ??= readVersion();
  return known ?? 'unknown';
}

/** @throws OnpolicyError `NATIVE_UNAVAILABLE` when this code lies in the output of a bundler, without the files that it needs */
export function requirePackage(): void {
  known ??= readVersion();
  if (known !== null) return;
  throw new OnpolicyError(
    'NATIVE_UNAVAILABLE',
    'onpolicy was bundled, so its addon, models and workers cannot be found: mark the package as external. docs/bundlers.md has the line for each bundler',
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
