/**
 * Answers -> lines of the output and of the errors, and a journal that says which rows have theirs. The journal is written after the lines:
 * when a run is resumed, output behind the last entry is cut off, so each row has one whole line, whenever the process was killed.
 */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing, LineWriter, parseJson, replaceFile, writing } from '../../common/index.ts';
import { lockForWriting, type WriterLock } from '../../common/writer-lock/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type { BatchRow } from '../../protocol/index.ts';
import type { RowPlace } from './row.ts';
import { openSource, type SourceItem } from './source.ts';

/** Settings that must be the same when a run is resumed, by the words that errors use for them. */
export type RunFacts = Readonly<Record<string, string | number | null>>;

/** Paths of the files that a run writes. */
export type RunFiles = { readonly output: string; readonly errors: string };

/** A row with its line. */
export type Finished = {
  readonly place: RowPlace;
  /** `0`: a line of the output, `1`: one of the errors. */
  readonly kind: 0 | 1;
  readonly row: BatchRow;
  /** True if a token limit cut its answer. */
  readonly isCut: boolean;
};

type Kind = Finished['kind'];

/** A line of the journal: line of the input, hash of the row, kind, the length of that kind's file in bytes after this row, 1 if the answer was cut. */
type Entry = readonly [line: number, hash: string, kind: Kind, end: number, cut?: 1];

/** Version of the journal's form. */
const FORMAT = 1;

/** Rows that earlier runs have finished. */
export type Done = {
  /** Hash of each finished row, by its line of the input. */
  readonly hashes: ReadonlyMap<number, string>;
  readonly counts: readonly [completed: number, failed: number];
  /** Number of answers that a token limit cut. */
  readonly cut: number;
  /** Lengths of the files in bytes. */
  readonly ends: readonly [output: number, errors: number];
};

/** The files of a run. One process writes to them. */
export type Journal = {
  readonly done: Done;
  /** Writes lines. Resolves when they are on the disk. */
  write(rows: readonly Finished[]): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens the files of a new run, or of one to resume.
 * @throws OnpolicyError `CONFLICT` if the output exists or belongs to another run, or if a fact has changed; `STORE_FAILED` if another
 * process writes to it or the disk fails
 */
export async function openJournal(files: RunFiles, facts: RunFacts, resume: boolean): Promise<Journal> {
  const folder = `${files.output}.journal`;
  const file = path.join(folder, 'rows.jsonl');
  const begun = await fs.stat(file).catch(ifMissing(null));
  const isNew = !begun || !resume;
  if (isNew) await requireNew(files, begun !== null);
  if (!begun) await writing(folder, () => makeFolder(folder));
  const lock = await lockForWriting('the journal', folder, randomUUID());
  try {
    if (isNew) await replaceFile(file, `${JSON.stringify({ format: FORMAT, ...facts })}\n`);
    const found = await readJournal(file, facts);
    await requireOwn(files, found.ends);
    return toJournal(
      files,
      folder,
      lock,
      found,
      await writing(file, () => LineWriter.open(file, found.bytes)),
    );
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function toJournal(
  { output, errors }: RunFiles,
  folder: string,
  lock: WriterLock,
  done: Found,
  journal: LineWriter,
): Journal {
  const files = [output, errors] as const;
  const writers: [output: LineWriter | null, errors: LineWriter | null] = [null, null];
  const open = (kind: Kind): Promise<LineWriter> =>
    writing(files[kind], () => LineWriter.open(files[kind], done.ends[kind]));
  return {
    done,
    async write(rows) {
      const entries: Entry[] = [];
      for (const { place, kind, row, isCut } of rows) {
        writers[kind] ??= await open(kind);
        const writer = writers[kind];
        await writing(files[kind], () => writer.write(row));
        const { line, hash } = place;
        entries.push(isCut ? [line, hash, kind, writer.bytes, 1] : [line, hash, kind, writer.bytes]);
      }
      for (const kind of [0, 1] as const)
        await writing(files[kind], async () => await writers[kind]?.flush());
      await writing(folder, async () => {
        if (!lock.isHeld()) throw new Error('another process has taken it over');
        for (const entry of entries) await journal.write(entry);
        await journal.flush();
      });
    },
    async close() {
      for (const writer of [...writers, journal]) await writer?.close();
      await lock.release();
    },
  };
}

/** Creates a folder unless it exists. Its parents must exist, as those of the output must. */
async function makeFolder(folder: string): Promise<void> {
  await fs.mkdir(folder).catch((error: unknown) => {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
  });
}

type Found = Done & { readonly bytes: number };

/** Reads a journal up to its first damaged line, such as a last line that a crash left incomplete. */
async function readJournal(file: string, facts: RunFacts): Promise<Found> {
  const hashes = new Map<number, string>();
  const ends: [number, number] = [0, 0];
  const counts: [number, number] = [0, 0];
  let bytes = 0;
  let cut = 0;
  const { items } = await openSource(file);
  for (let next = await items.next(); !next.done; next = await items.next())
    for (const item of next.value) {
      const value = parse(item);
      if (value === null) return { hashes, ends, counts, cut, bytes }; // lines behind a damaged one are ignored
      if (item.line === 1) compareFacts(value as RunFacts, facts);
      else {
        const [line, hash, kind, end, isCut = 0] = value as unknown as Entry;
        cut += isCut;
        hashes.set(line, hash);
        ends[kind] = end;
        counts[kind] += 1;
      }
      bytes += item.bytes;
    }
  return { hashes, ends, counts, cut, bytes };
}

/** Returns null if the line is damaged or has no newline. */
function parse({ value, bytes }: SourceItem): object | null {
  const text = String(value);
  return Buffer.byteLength(text) === bytes ? null : (parseJson(text, null) as object | null);
}

function compareFacts(old: RunFacts, facts: RunFacts): void {
  for (const [name, value] of Object.entries({ format: FORMAT, ...facts })) {
    if (old[name] === value) continue;
    const msg = `resume: ${name} has changed since the run began: it was ${JSON.stringify(old[name])} and is ${JSON.stringify(value)}`;
    throw new OnpolicyError('CONFLICT', msg, { param: 'resume' });
  }
}

async function requireNew({ output, errors }: RunFiles, hasJournal: boolean): Promise<void> {
  for (const [param, file] of Object.entries({ output, errors })) {
    if (!(await fs.stat(file).catch(ifMissing(null)))) continue;
    const why = hasJournal
      ? 'exists; resume continues it'
      : 'exists and is not of a batch that can be resumed: its journal is missing';
    throw errorAt(param, 'CONFLICT', `${file} ${why}`);
  }
}

/** Throws if a file is shorter than the journal says. */
async function requireOwn({ output, errors }: RunFiles, ends: readonly number[]): Promise<void> {
  for (const [kind, [param, file]] of Object.entries({ output, errors }).entries()) {
    const end = ends[kind]!;
    const found = await fs.stat(file).catch(ifMissing(null));
    if (end === 0 || (found && found.size >= end && (await endsLine(file, end)))) continue;
    const msg = `${param}: ${file} is not the file of this run: its journal records ${end} bytes, which are not there`;
    throw new OnpolicyError('CONFLICT', msg, { param });
  }
}

async function endsLine(file: string, end: number): Promise<boolean> {
  await using handle = await fs.open(file, 'r');
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, end - 1);
  return buffer[0] === 0x0a;
}
