/** Facts about a downloaded file <-> notes beside it: the hub's size and hash, and the projector in its repository. */
import fs from 'node:fs';
import { ifMissing, isObject, parseJson, replaceFile } from '../../common/index.ts';

type Topic = 'hub' | 'projector';

export function notesOf(file: string): string[] {
  return [noteFile(file, 'hub'), noteFile(file, 'projector')];
}

/** Writes a note. In a folder that cannot be written to, the fact is asked for again or stays unknown. */
export async function writeNote(file: string, topic: Topic, note: object): Promise<void> {
  await replaceFile(noteFile(file, topic), `${JSON.stringify(note)}\n`).catch(() => {}); // the file can be used without it
}

/** Reads a note. Returns an empty object if it is missing or damaged. */
export function readNote(file: string, topic: Topic): Readonly<Record<string, unknown>> {
  try {
    const note = parseJson(fs.readFileSync(noteFile(file, topic), 'utf8'));
    return isObject(note) ? note : {};
  } catch (error) {
    return ifMissing({})(error);
  }
}

function noteFile(file: string, topic: Topic): string {
  return `${file}.${topic}.json`;
}
