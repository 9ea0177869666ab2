/** What the hub said of a downloaded file <-> a note beside it. */
import fs from 'node:fs';
import { ifMissing } from '../common/index.ts';
import type { Facts } from './download-file.ts';

const ENDING = '.hub.json';

/** A note. */
export type Note = Pick<Facts, 'size' | 'hash'>;

/** Writes it. A folder that does not take it has no note: the file is used all the same. */
export function noteDownload(file: string, { size, hash }: Note): void {
  try {
    fs.writeFileSync(`${file}${ENDING}`, `${JSON.stringify({ size, hash })}\n`);
  } catch {
    // `verify` then says that the hash is not known
  }
}

/** Null: there is none, or what is there is no note. */
export function readNote(file: string): Note | null {
  try {
    const { size, hash } = JSON.parse(fs.readFileSync(`${file}${ENDING}`, 'utf8')) as Partial<Note>;
    return { size: typeof size === 'number' ? size : null, hash: typeof hash === 'string' ? hash : null };
  } catch (error) {
    return error instanceof SyntaxError ? null : ifMissing(null)(error);
  }
}
