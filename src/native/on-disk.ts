/** A path -> the path under which native code can open it. Electron packs an app into one archive that only JavaScript can read. */
import fs from 'node:fs';

/** Inside an ASAR archive: the same file in the unpacked folder beside it, when it is there. Any other path as it is. */
export function onDisk(file: string): string {
  const unpacked = file.replace(/\.asar(?=[\\/])/, '.asar.unpacked');
  return unpacked !== file && fs.existsSync(unpacked) ? unpacked : file;
}
