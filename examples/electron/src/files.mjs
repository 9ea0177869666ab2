// @ts-check
/** Small JSON files of the app: a file is whole or as it was, also after a power cut. */
import fs from 'node:fs';
import path from 'node:path';

/**
 * @template T
 * @param {string} file
 * @param {T} otherwise what a missing file stands for
 * @returns {T}
 */
export function readJson(file, otherwise) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return otherwise;
    // Half a file can only come from elsewhere: it is kept for a look, and the app starts.
    fs.renameSync(file, `${file}.damaged`);
    return otherwise;
  }
}

/** @param {string} file @param {unknown} value */
export function writeJson(file, value) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const temporary = `${file}.new`;
  fs.writeFileSync(temporary, JSON.stringify(value, null, 1), { flush: true });
  fs.renameSync(temporary, file);
}
