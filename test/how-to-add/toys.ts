/** Files `*.toy` -> changes of the tree: each adds one thing that a row of "How to add" names. */
import fs from 'node:fs';
import path from 'node:path';

/** One change of a file: lines put at the only line that is the anchor, or has it. */
type Edit = { readonly place: Place; readonly anchor: string; readonly lines: string[] };
type Place = 'before' | 'after' | 'instead' | 'end';

/** A toy: the row that it follows, and what it changes. */
export type Toy = {
  readonly name: string;
  readonly row: string;
  /** Words of a test that shows its effect. */
  readonly proof: string;
  /** Tests that read what it changes, beside those that it changes itself. */
  readonly tests: readonly string[];
  /** By file. A file without edits is new: its lines stand at the place `end`. */
  readonly files: ReadonlyMap<string, readonly Edit[]>;
};

const FOLDER = import.meta.dirname;

/** All toys. */
export function readToys(): Toy[] {
  return fs
    .readdirSync(FOLDER)
    .filter((file) => file.endsWith('.toy'))
    .map((file) => parse(file, fs.readFileSync(path.join(FOLDER, file), 'utf8')));
}

/** Heads, then of each file its name and its edits: a line that says where, and those that are put there. */
function parse(name: string, text: string): Toy {
  const [heads = '', ...parts] = text.split(/^=== /m);
  const head = (key: string): string => new RegExp(`^${key}: (.*)$`, 'm').exec(heads)?.[1] ?? '';
  const files = parts.map((part): [string, Edit[]] => {
    const [file = '', ...lines] = part.trimEnd().split('\n');
    const edits: Edit[] = [];
    for (const line of lines) {
      const [, place, anchor] = /^(before|after|instead|end)\b ?(.*)$/.exec(line) ?? [];
      if (edits.length === 0 && !place) edits.push({ place: 'end', anchor: '', lines: [] });
      if (place) edits.push({ place: place as Place, anchor: anchor!, lines: [] });
      else if (/^\+( |$)/.test(line)) edits.at(-1)!.lines.push(line.slice(2));
      else if (line !== '') throw new Error(`${name}: a line that is no part of a toy: ${line}`);
    }
    return [file, edits];
  });
  const tests = head('run');
  return {
    name,
    row: head('row'),
    proof: head('proof'),
    tests: tests ? tests.split(' ') : [],
    files: new Map(files),
  };
}

/** Applies a toy to a tree. Throws where an anchor is not in exactly one line. */
export function applyToy(root: string, { name, files }: Toy): void {
  for (const [file, edits] of files) {
    const full = path.join(root, file);
    const lines = fs.existsSync(full) ? fs.readFileSync(full, 'utf8').trimEnd().split('\n') : [];
    for (const { place, anchor, lines: added } of edits) {
      const whole = lines.flatMap((line, i) => (line.trim() === anchor ? [i] : []));
      const found = whole.length > 0 ? whole : lines.flatMap((line, i) => (line.includes(anchor) ? [i] : []));
      if (place !== 'end' && found.length !== 1)
        throw new Error(`${name}: ${file}: expected one line with "${anchor}", found ${found.length}`);
      const at = place === 'end' ? lines.length : found[0]! + (place === 'after' ? 1 : 0);
      lines.splice(at, place === 'instead' ? 1 : 0, ...added);
    }
    fs.writeFileSync(full, `${lines.join('\n')}\n`);
  }
}
