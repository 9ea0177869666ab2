/** The name of a split, any text -> the name of its folder, on every file system. */
import { createHash } from 'node:crypto';

const LONGEST = 150;
/** Windows keeps these for devices. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/** Small letters, digits, `-` and `_` stay as they are; the rest is written as `%` and its bytes. Different splits differ. */
export function splitFolder(split: string): string {
  const name = Array.from(Buffer.from(split), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[a-z0-9_-]/.test(letter) ? letter : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');
  if (RESERVED.test(name)) return `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
  if (name.length <= LONGEST) return name;
  return `${name.slice(0, LONGEST)}%${createHash('sha256').update(split).digest('hex').slice(0, 16)}`;
}
