/** This package -> its version. */
import fs from 'node:fs';

let known: string | undefined;

/** The version; `unknown` where a bundler left the manifest behind. */
export function packageVersion(): string {
  known ??= readVersion();
  return known;
}

function readVersion(): string {
  try {
    const text = fs.readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
    const { name, version } = JSON.parse(text) as { name?: string; version?: string };
    return name === 'onpolicy' && version ? version : 'unknown';
  } catch {
    return 'unknown';
  }
}
