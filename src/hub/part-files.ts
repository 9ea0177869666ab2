/** The rest of a download <-> the file of the one process that receives it. */
import fs from 'node:fs';
import { processWord, runsHere } from '../common/index.ts';

/** A process of another machine or container that wrote nothing for so long receives nothing more. */
const SILENT_MS = 600_000;

/** This process's own file of what came so far. */
export function ownPart(rest: string): string {
  return `${rest}.${processWord()}`;
}

/** Whether a process receives this file now. */
export function isBeingWritten(part: string): boolean {
  const word = /\.part\.([^.]+)$/.exec(part)?.[1];
  if (word === undefined) return false; // its process has ended, and renamed it
  const writtenMs = fs.statSync(part, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return runsHere(word) ?? Date.now() - writtenMs < SILENT_MS;
}
