/** A partial download <-> the file of the process that receives it. */
import fs from 'node:fs';
import { processWord, runsHere } from '../../common/index.ts';

/** A process of another machine or container counts as ended if it wrote nothing for this long. */
const SILENT_MS = 600_000;

/** Returns the path of this process's file for the bytes received so far. */
export function ownPart(rest: string): string {
  return `${rest}.${processWord()}`;
}

/** Returns true if a process is receiving this file. */
export function isBeingWritten(part: string): boolean {
  const word = /\.part\.([^.]+)$/.exec(part)?.[1];
  if (word === undefined) return false; // its process has ended and renamed it
  const writtenMs = fs.statSync(part, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return runsHere(word) ?? Date.now() - writtenMs < SILENT_MS;
}
