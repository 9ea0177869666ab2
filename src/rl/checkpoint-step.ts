/** A trainer's state -> the folder of a step, complete or absent: a crash leaves the old steps and nothing half-written. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  flushFolder,
  ifMissing,
  makeFolder,
  readText,
  rename,
  replaceFile,
  storeFailed,
  writeFlushed,
  writing,
} from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { Metrics } from './metrics.ts';
import type { Trainer } from './trainer.ts';

/** What a step's folder says about itself. */
export type StepFacts = {
  readonly id: string;
  readonly step: number;
  readonly metrics: Metrics;
  /** SHA-256 of what it was trained on, a line of JSON per trajectory or conversation. */
  readonly trajectory_hash: string;
  /** Its other files, by name. */
  readonly files?: Readonly<Record<string, FileFacts>>;
};

/** What a file must be, byte for byte. */
type FileFacts = { readonly bytes: number; readonly sha256: string };

const FACTS_FILE = 'checkpoint.json';
/** Holds the highest step that was ever written. */
const NEWEST_FILE = 'newest-step';
const TEMPORARY = '.incomplete-';

/** The folder of a step. */
export function stepFolder(checkpoints: string, step: number): string {
  return path.join(checkpoints, String(step).padStart(6, '0'));
}

/**
 * The number of the next step: above all that were ever written, also deleted ones.
 * @throws OnpolicyError `STORE_FAILED` when the highest one is not known
 */
export async function nextStep(checkpoints: string): Promise<number> {
  const file = path.join(checkpoints, NEWEST_FILE);
  const newest = ((await readText(file)) ?? '0').trim();
  if (!/^\d+$/.test(newest))
    throw new OnpolicyError(
      'STORE_FAILED',
      `${file} is damaged: expected the highest step that was ever written, got ${JSON.stringify(newest.slice(0, 50))}`,
    );
  return Math.max((await listSteps(checkpoints)).at(-1) ?? 0, Number(newest)) + 1;
}

/** The steps that are complete, in order. Leftovers of crashed jobs are none. */
export async function listSteps(checkpoints: string): Promise<number[]> {
  const names = await fs.readdir(checkpoints).catch(ifMissing([]));
  return names
    .filter((name) => /^\d{6,}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Writes a step: into a temporary folder, flushed, then renamed. Fails when the step exists.
 * @param probe called with the complete folder; what it throws keeps the step from being published
 */
export async function writeStep(
  checkpoints: string,
  trainer: Trainer,
  facts: StepFacts,
  probe: (folder: string) => Promise<void> = async () => {},
): Promise<string> {
  const target = stepFolder(checkpoints, facts.step);
  const temporary = path.join(checkpoints, `${TEMPORARY}${facts.id}`);
  const what = `the checkpoint ${target}`;
  try {
    await writing(what, async () => {
      await makeFolder(checkpoints);
      await trainer.save(temporary);
      const content = { format: 1, ...facts, files: await hashFiles(temporary) };
      await writeFlushed(path.join(temporary, FACTS_FILE), [`${JSON.stringify(content, null, 2)}\n`]);
      await flushFolder(temporary);
    });
    await probe(temporary);
    await writing(what, async () => {
      await replaceFile(path.join(checkpoints, NEWEST_FILE), `${facts.step}\n`);
      await rename(temporary, target);
      await flushFolder(checkpoints);
    });
  } catch (cause) {
    await fs.rm(temporary, { recursive: true, force: true });
    throw cause;
  }
  return target;
}

/** Reads what a step's folder says about itself. */
export async function readFacts(checkpoints: string, step: number): Promise<StepFacts> {
  const facts = await factsIn(stepFolder(checkpoints, step));
  if (facts) return facts;
  throw new OnpolicyError('MODEL_NOT_FOUND', `no complete checkpoint of step ${step} in ${checkpoints}`);
}

/** Null: the folder says nothing. */
async function factsIn(folder: string): Promise<StepFacts | null> {
  const file = path.join(folder, FACTS_FILE);
  const text = await readText(file);
  try {
    return text === null ? null : (JSON.parse(text) as StepFacts);
  } catch (cause) {
    throw storeFailed(`${file} is damaged`, cause);
  }
}

/** Removes what crashed jobs left. Only for a store that no other process writes to. */
export async function removeLeftovers(checkpoints: string): Promise<void> {
  const names = await fs.readdir(checkpoints).catch(ifMissing([]));
  for (const name of names.filter((name) => name.startsWith(TEMPORARY)))
    await fs.rm(path.join(checkpoints, name), { recursive: true, force: true });
}

/** One hash over what a job was given, one item after the other, so that much of it does not hold up the caller's thread. */
export async function hashOf(items: readonly unknown[]): Promise<string> {
  const hash = createHash('sha256');
  for (const item of items) {
    hash.update(`${JSON.stringify(item)}\n`);
    await setImmediate();
  }
  return hash.digest('hex');
}

/** Which file of a step's folder is not the one that was written, in words; null: all are. */
export async function checkFiles(folder: string): Promise<string | null> {
  const facts = await factsIn(folder);
  if (!facts) return `${path.join(folder, FACTS_FILE)} is missing`;
  for (const [name, expected] of Object.entries(facts.files ?? {})) {
    const file = path.join(folder, name);
    const found = await hashFile(file).catch(ifMissing(null));
    if (!found) return `${file} is missing`;
    if (found.bytes !== expected.bytes) return `${file} has ${found.bytes} bytes of ${expected.bytes}`;
    if (found.sha256 !== expected.sha256) return `${file} is damaged: its checksum differs`;
  }
  return null;
}

async function hashFiles(folder: string): Promise<Record<string, FileFacts>> {
  const names = (await fs.readdir(folder)).sort();
  const entries: [string, FileFacts][] = [];
  for (const name of names) entries.push([name, await hashFile(path.join(folder, name))]);
  return Object.fromEntries(entries);
}

async function hashFile(file: string): Promise<FileFacts> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(file)) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}
