/** What is known of a downloaded file <-> notes beside it: of what the hub said of it, and of the projector in its repository. */
import fs from 'node:fs';
import { ifMissing, isObject, parseJson } from '../common/index.ts';

type Topic = 'hub' | 'projector';

export function notesOf(file: string): string[] {
  return [noteFile(file, 'hub'), noteFile(file, 'projector')];
}

/** Writes one. A folder that does not take it has no note: what it says is asked for again, or not known. */
export function writeNote(file: string, topic: Topic, note: object): void {
  try {
    fs.writeFileSync(noteFile(file, topic), `${JSON.stringify(note)}\n`);
  } catch {
    // the file is used all the same
  }
}

/** Nothing is in it where there is none, or what is there is no note. */
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
