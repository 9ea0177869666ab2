/** The name of a split (any text) -> the name of its folder, valid on every file system. */
import { createHash } from 'node:crypto';

const LONGEST = 150;
/** Names of devices on Windows. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/** Escapes all but lower-case letters, digits, `-` and `_` as `%` and the byte in hex. Different splits get different names. */
export function splitFolder(split: string): string {
  const name = Array.from(Buffer.from(split), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[a-z0-9_-]/.test(letter) ? letter : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');
  if (RESERVED.test(name)) return `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
  if (name.length <= LONGEST) return name;
  return `${name.slice(0, LONGEST)}%${createHash('sha256').update(split).digest('hex').slice(0, 16)}`;
}
