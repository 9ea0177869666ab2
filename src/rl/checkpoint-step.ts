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
  publishFolder,
  readText,
  replaceFile,
  storeFailed,
  writeFlushed,
  writing,
} from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import { DECISIONS_FILE } from '../models/index.ts';
import type { DecisionCalibration } from '../protocol/index.ts';
import type { Metrics } from './metrics.ts';
import type { Trainer } from './trainer.ts';

/** Contents of the file that describes a step's folder. */
export type StepFacts = {
  readonly id: string;
  readonly step: number;
  readonly metrics: Metrics;
  /** SHA-256 of the training data: a line of JSON per trajectory or conversation. */
  readonly trajectory_hash: string;
  /** Facts about the folder's other files, by name. */
  readonly files?: Readonly<Record<string, FileFacts>>;
};

/** Size and hash that a file must have. */
type FileFacts = { readonly bytes: number; readonly sha256: string };

export const FACTS_FILE = 'checkpoint.json';
/** File with the highest step that was ever written. */
const NEWEST_FILE = 'newest-step';
const TEMPORARY = '.incomplete-';

/** The folder of a step. */
export function stepFolder(checkpoints: string, step: number): string {
  return path.join(checkpoints, String(step).padStart(6, '0'));
}

/**
 * Returns the number of the next step: above all that were ever written, including deleted ones.
 * @throws OnpolicyError `STORE_FAILED` if the highest one is not known
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

/** Returns the complete steps in order, without leftovers of crashed jobs. */
export async function listSteps(checkpoints: string): Promise<number[]> {
  const names = await fs.readdir(checkpoints).catch(ifMissing([]));
  return names
    .filter((name) => /^\d{6,}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Writes a step to a temporary folder, flushes it, then renames it. Fails if the step exists. `decisions`: what was fitted for its
 * decisions. `probe`: called with the complete folder; if it throws, the step is not published.
 */
export async function writeStep(
  checkpoints: string,
  trainer: Trainer,
  facts: StepFacts,
  {
    probe,
    decisions = null,
  }: {
    readonly probe?: ((folder: string) => Promise<void>) | undefined;
    readonly decisions?: DecisionCalibration | null;
  } = {},
): Promise<string> {
  const target = stepFolder(checkpoints, facts.step);
  const temporary = path.join(checkpoints, `${TEMPORARY}${facts.id}`);
  const what = `the checkpoint ${target}`;
  await publishFolder({ target, temporary, what }, async (folder) => {
    await writing(what, async () => {
      await makeFolder(checkpoints);
      await trainer.save(folder);
      if (decisions) await writeFlushed(path.join(folder, DECISIONS_FILE), [JSON.stringify(decisions)]);
      const content = { format: 1, ...facts, files: await hashFiles(folder) };
      await writeFlushed(path.join(folder, FACTS_FILE), [`${JSON.stringify(content, null, 2)}\n`]);
      await flushFolder(folder);
    });
    await probe?.(folder);
    await writing(what, () => replaceFile(path.join(checkpoints, NEWEST_FILE), `${facts.step}\n`));
  });
  return target;
}

/** Reads the description of a step's folder. */
export async function readFacts(checkpoints: string, step: number): Promise<StepFacts> {
  const facts = await factsIn(stepFolder(checkpoints, step));
  if (facts) return facts;
  throw new OnpolicyError('MODEL_NOT_FOUND', `no complete checkpoint of step ${step} in ${checkpoints}`);
}

/** Returns the description in a step's folder, or null if it has none. `onDamage` gets the error of one that is not JSON. */
export async function factsIn(
  folder: string,
  onDamage: (file: string, cause: unknown) => null = (file, cause) => {
    throw storeFailed(`${file} is damaged`, cause);
  },
): Promise<StepFacts | null> {
  const file = path.join(folder, FACTS_FILE);
  const text = await readText(file);
  try {
    return text === null ? null : (JSON.parse(text) as StepFacts);
  } catch (cause) {
    return onDamage(file, cause);
  }
}

/** Removes leftovers of crashed jobs. Call it only if no other process writes to the store. */
export async function removeLeftovers(checkpoints: string): Promise<void> {
  const names = await fs.readdir(checkpoints).catch(ifMissing([]));
  for (const name of names.filter((name) => name.startsWith(TEMPORARY)))
    await fs.rm(path.join(checkpoints, name), { recursive: true, force: true });
}

/** Returns one hash over a job's input, computed item by item so that the caller's thread is not blocked for long. */
export async function hashOf(items: readonly unknown[]): Promise<string> {
  const hash = createHash('sha256');
  for (const item of items) {
    hash.update(`${JSON.stringify(item)}\n`);
    await setImmediate();
  }
  return hash.digest('hex');
}

/** Returns a description of the first file of a step's folder that was changed, or null if all are intact. */
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
