/** Trajectories and metrics <-> files of a model's run. `committed.json` states how many bytes of each file are complete. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { flushFolder, LineWriter, makeFolder, replaceFile } from '../common/index.ts';
import type { MetricValues, RolloutException } from '../protocol/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';
import { readLines } from './jsonl.ts';
import { splitFolder } from './split-folder.ts';

/** Size at which the next file begins. */
const FULL_BYTES = 8 * 2 ** 20;
/** Files that a limit has room for, so that little more than necessary is deleted at once. */
const FILES_AT_LEAST = 8;

/** One line of `metrics.jsonl`. */
export type MetricRecord = {
  /** The checkpoint that was measured. */
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
  /** The model's newest checkpoint when it was logged. */
  readonly step: number;
  /** Seconds since 1970. */
  readonly created: number;
  /** As passed to the log call. */
  readonly trajectory: Content;
};

/** An attempt that failed, as it was logged: a line after those of its group. */
export type LoggedException = Omit<TrajectoryRecord, 'trajectory'> & {
  readonly exception: RolloutException;
};

/** Attempts at one task. */
export type LoggedGroup<Content> = {
  readonly trajectories: readonly Content[];
  readonly exceptions?: readonly RolloutException[] | null | undefined;
};

/** What is appended to a split. */
export type Logged<Content> = {
  readonly split: string;
  readonly groups: Iterable<LoggedGroup<Content>>;
  /** Of training: files of the split beyond this many of the newest bytes are deleted. Null: a log call, which is kept. */
  readonly mostBytes: number | null;
};

/** How much of a trajectory file is complete. Of a file that gave way only the number of groups is left. */
export type TrajectoryFile = {
  readonly bytes: number;
  readonly groups: number;
  readonly trajectories: number;
  /** Whether training wrote it, not a log call. */
  readonly is_training?: true;
};

/** How much of each file is complete; the rest was left by a crash. */
export type Committed = {
  readonly format: number;
  readonly metrics_bytes: number;
  /** By split: its files in order, from `1.jsonl`. */
  readonly splits: Readonly<Record<string, readonly TrajectoryFile[]>>;
};

const NOTHING: Committed = { format: FORMAT, metrics_bytes: 0, splits: {} };

/** Reads how much is complete. */
export async function readCommitted(home: Home, modelFolder: string, isNeeded = false): Promise<Committed> {
  return (await readRecord<Committed>(home, path.join(modelFolder, 'committed.json'), isNeeded)) ?? NOTHING;
}

/** The file of a split. */
export function trajectoryFile(modelFolder: string, split: string, n: number): string {
  return path.join(modelFolder, 'trajectories', splitFolder(split), `${n}.jsonl`);
}

/**
 * Appends metrics and, with `logged`, groups of trajectories: all or, on failure, nothing. One call at a time for a model.
 */
export async function appendToRun<Content>(
  home: Home,
  modelFolder: string,
  step: number,
  logged: Logged<Content> | null,
  metrics: () => Omit<MetricRecord, 'step' | 'created'>,
): Promise<void> {
  const committed = await readCommitted(home, modelFolder, true); // what it does not count is overwritten
  const created = Math.floor(Date.now() / 1000);
  let { splits } = committed;
  let old: number[] = [];
  if (logged) {
    const { split, mostBytes } = logged;
    const before = Object.hasOwn(splits, split) ? splits[split]! : [];
    const files = await appendGroups(modelFolder, logged, before, { step, created });
    old = mostBytes === null ? [] : filesToDrop(files, mostBytes);
    for (const i of old) files[i] = { ...files[i]!, bytes: 0, trajectories: 0 };
    splits = { ...splits, [split]: files };
  }
  const writer = await LineWriter.open(path.join(modelFolder, 'metrics.jsonl'), committed.metrics_bytes);
  try {
    await writer.write({ step, created, ...metrics() } satisfies MetricRecord);
    await writer.flush();
  } finally {
    await writer.close();
  }
  const next: Committed = { format: FORMAT, metrics_bytes: writer.bytes, splits };
  await replaceFile(path.join(modelFolder, 'committed.json'), `${JSON.stringify(next)}\n`);
  for (const i of old) await fs.rm(trajectoryFile(modelFolder, logged!.split, i + 1), { force: true });
}

/** Indices of the oldest files of training, as many as its newest `mostBytes` need not. The last one stays. */
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
  { split, groups, mostBytes }: Logged<Content>,
  before: readonly TrajectoryFile[],
  common: { readonly step: number; readonly created: number },
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
      for (const [index, trajectory] of trajectories.entries())
        await writer.write({ group, index, ...common, trajectory } satisfies TrajectoryRecord<Content>);
      for (const [i, exception] of (exceptions ?? []).entries()) {
        const index = trajectories.length + i;
        await writer.write({ group, index, ...common, exception } satisfies LoggedException);
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
