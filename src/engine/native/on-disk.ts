/** A path -> the path under which native code can open it. Electron packs an app into one archive that only JavaScript can read. */
import fs from 'node:fs';
import path from 'node:path';

/** From here on Windows takes only paths that begin with two backslashes, a question mark and a backslash. */
const LONG_ON_WINDOWS = 248;

/**
 * Inside an ASAR archive: the same file in the unpacked folder beside it, when it is there. A long path on Windows: in its form
 * without a limit. Any other path as it is.
 */
export function onDisk(file: string): string {
  const unpacked = file.replace(/\.asar(?=[\\/])/, '.asar.unpacked');
  const found = unpacked !== file && fs.existsSync(unpacked) ? unpacked : file;
  const isLong = process.platform === 'win32' && path.resolve(found).length >= LONG_ON_WINDOWS;
  return isLong ? path.toNamespacedPath(found) : found;
}
