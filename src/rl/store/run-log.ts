/** Trajectories and metrics <-> files of a model's run. `committed.json` states how many bytes of each file are complete. */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { flushFolder, LineWriter, makeFolder, replaceFile } from '../../common/index.ts';
import type { MetricValues, RolloutException } from '../../protocol/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { readLines } from './jsonl.ts';

/** Size at which the next file begins. */
const FULL_BYTES = 8 * 2 ** 20;
/** A size limit is split into at least this many files, so that deletion removes little more than necessary. */
const FILES_AT_LEAST = 8;

/** One line of `metrics.jsonl`. */
export type MetricRecord = {
  /** The measured checkpoint; for metrics of training, the one that it wrote. */
  readonly step: number;
  /** Seconds since 1970. */
  readonly created: number;
  /** `training`, or the split of a log call. */
  readonly source: string;
  readonly metrics: MetricValues;
};

/** One line of `trajectories/<split>/<n>.jsonl`. */
export type TrajectoryRecord<Content = unknown> = {
  /** Index of the group in its split, from 0. */
  readonly group: number;
  /** Index within the group, from 0. */
  readonly index: number;
  /** The step of the model that sampled it. */
  readonly step: number;
  /** Seconds since 1970. */
  readonly created: number;
  /** As passed to the log call. */
  readonly trajectory: Content;
};

/** A failed attempt as it was logged: a line after those of its group. */
export type LoggedException = Omit<TrajectoryRecord, 'trajectory'> & {
  readonly exception: RolloutException;
};

/** Attempts at one task. */
export type LoggedGroup<Content> = {
  readonly trajectories: readonly Content[];
  readonly exceptions?: readonly RolloutException[] | null | undefined;
};

/** Records to append to a split. */
export type Logged<Content> = {
  readonly split: string;
  readonly groups: Iterable<LoggedGroup<Content>>;
  /** Returns the step of the model that sampled a trajectory. Null stands for a failed attempt. */
  readonly stepOf: (trajectory: Content | null) => number;
  /**
   * For training: the oldest files of the split are deleted while the newer ones exceed this many bytes. Null for a log call, whose files
   * are kept.
   */
  readonly mostBytes: number | null;
};

/** Complete part of a trajectory file. For a deleted file only the number of groups is kept. */
export type TrajectoryFile = {
  readonly bytes: number;
  readonly groups: number;
  readonly trajectories: number;
  /** True if training wrote it instead of a log call. */
  readonly is_training?: true;
};

/** Complete part of each file. A crash may leave further bytes. */
export type Committed = {
  readonly format: number;
  readonly metrics_bytes: number;
  /** By split: its files in order, starting with `1.jsonl`. */
  readonly splits: Readonly<Record<string, readonly TrajectoryFile[]>>;
};

const NOTHING: Committed = { format: FORMAT, metrics_bytes: 0, splits: {} };

/** Reads the sizes of the complete parts. */
export async function readCommitted(home: Home, modelFolder: string, isNeeded = false): Promise<Committed> {
  return (await readRecord<Committed>(home, path.join(modelFolder, 'committed.json'), isNeeded)) ?? NOTHING;
}

/** The file of a split. */
export function trajectoryFile(modelFolder: string, split: string, n: number): string {
  return path.join(modelFolder, 'trajectories', splitFolder(split), `${n}.jsonl`);
}

/**
 * Appends metrics and, with `logged`, groups of trajectories: all of them or, on failure, nothing. Only one call at a time for a model.
 * @param metrics called when the groups were written
 */
export async function appendToRun<Content>(
  home: Home,
  modelFolder: string,
  logged: Logged<Content> | null,
  metrics: () => readonly Omit<MetricRecord, 'created'>[],
): Promise<void> {
  const committed = await readCommitted(home, modelFolder, true); // bytes beyond the committed ones are overwritten
  const created = Math.floor(Date.now() / 1000);
  let { splits } = committed;
  let old: number[] = [];
  if (logged) {
    const { split, mostBytes } = logged;
    const before = Object.hasOwn(splits, split) ? splits[split]! : [];
    const files = await appendGroups(modelFolder, logged, before, created);
    old = mostBytes === null ? [] : filesToDrop(files, mostBytes);
    for (const i of old) files[i] = { ...files[i]!, bytes: 0, trajectories: 0 };
    splits = { ...splits, [split]: files };
  }
  const writer = await LineWriter.open(path.join(modelFolder, 'metrics.jsonl'), committed.metrics_bytes);
  try {
    for (const { step, ...record } of metrics())
      await writer.write({ step, created, ...record } satisfies MetricRecord);
    await writer.flush();
  } finally {
    await writer.close();
  }
  const next: Committed = { format: FORMAT, metrics_bytes: writer.bytes, splits };
  await replaceFile(path.join(modelFolder, 'committed.json'), `${JSON.stringify(next)}\n`);
  for (const i of old) await fs.rm(trajectoryFile(modelFolder, logged!.split, i + 1), { force: true });
}

/** Returns the indices of the oldest files of training that exceed its newest `mostBytes`. The last file stays. */
function filesToDrop(files: readonly TrajectoryFile[], mostBytes: number): number[] {
  const kept = [...files.keys()].filter((i) => files[i]!.is_training && files[i]!.bytes > 0);
  let rest = kept.reduce((sum, i) => sum + files[i]!.bytes, 0);
  return kept.slice(0, -1).filter((i) => {
    const isOver = rest > mostBytes;
    if (isOver) rest -= files[i]!.bytes;
    return isOver;
  });
}

/** The lines of `metrics.jsonl`, oldest first, starting at a byte. */
export async function* readMetrics(home: Home, modelFolder: string, start = 0): AsyncGenerator<MetricRecord> {
  const { metrics_bytes } = await readCommitted(home, modelFolder);
  yield* readLines<MetricRecord>(home, path.join(modelFolder, 'metrics.jsonl'), {
    start,
    end: metrics_bytes,
  });
}

/** The attempts of a split, oldest first, starting at a group. */
export async function* readTrajectories<Content>(
  home: Home,
  modelFolder: string,
  split: string,
  fromGroup = 0,
): AsyncGenerator<TrajectoryRecord<Content> | LoggedException> {
  const { splits } = await readCommitted(home, modelFolder);
  const files = Object.hasOwn(splits, split) ? splits[split]! : [];
  let firstGroup = 0;
  for (const [i, { bytes, groups }] of files.entries()) {
    firstGroup += groups;
    if (firstGroup <= fromGroup) continue;
    const file = trajectoryFile(modelFolder, split, i + 1);
    const lines = readLines<TrajectoryRecord<Content> | LoggedException>(home, file, { end: bytes });
    for await (const line of lines) if (line.group >= fromGroup) yield line;
  }
}

async function appendGroups<Content>(
  modelFolder: string,
  { split, groups, stepOf, mostBytes }: Logged<Content>,
  before: readonly TrajectoryFile[],
  created: number,
): Promise<TrajectoryFile[]> {
  const files = [...before];
  const isTraining = mostBytes !== null;
  const fullBytes = Math.min(FULL_BYTES, (mostBytes ?? FULL_BYTES * FILES_AT_LEAST) / FILES_AT_LEAST);
  let group = files.reduce((sum, file) => sum + file.groups, 0);
  let writer: LineWriter | null = null;
  const finish = async () => {
    await writer?.flush();
    await writer?.close();
    writer = null;
  };
  try {
    for (const { trajectories, exceptions } of groups) {
      let last = files.at(-1);
      if (!last || last.bytes >= fullBytes || Boolean(last.is_training) !== isTraining) {
        await finish();
        last = { bytes: 0, groups: 0, trajectories: 0, ...(isTraining ? { is_training: true } : {}) };
        files.push(last);
      }
      writer ??= await openFile(trajectoryFile(modelFolder, split, files.length), last.bytes);
      for (const [index, trajectory] of trajectories.entries()) {
        const step = stepOf(trajectory);
        await writer.write({ group, index, step, created, trajectory } satisfies TrajectoryRecord<Content>);
      }
      for (const [i, exception] of (exceptions ?? []).entries()) {
        const index = trajectories.length + i;
        const step = stepOf(null);
        await writer.write({ group, index, step, created, exception } satisfies LoggedException);
      }
      group++;
      files[files.length - 1] = {
        ...last,
        bytes: writer.bytes,
        groups: last.groups + 1,
        trajectories: last.trajectories + trajectories.length,
      };
    }
    await finish();
  } finally {
    await (writer as LineWriter | null)?.close();
  }
  return files;
}

async function openFile(file: string, bytes: number): Promise<LineWriter> {
  const folder = path.dirname(file);
  if (bytes === 0) await makeFolder(folder);
  const writer = await LineWriter.open(file, bytes);
  if (bytes === 0) await flushFolder(folder);
  return writer;
}

/** Length of the longest name of a folder; a hash replaces the rest. */
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
