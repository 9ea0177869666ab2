/** Home folders for tests: opened twice, through the runtime and below it, and closed when the test ends. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach } from 'vitest';
import type { RuntimeOptions } from '../../../src/protocol/index.ts';
import { listSteps, writeStep } from '../../../src/rl/checkpoint-step.ts';
import { openStore } from '../../../src/rl/store/open-store.ts';
import type { Store } from '../../../src/rl/store/store.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { fakeTrainer } from '../fake-trainer.ts';

/** An opened home folder. */
export type TestHome = {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly home: string;
  /** Reports of damaged files. */
  readonly problems: string[];
};

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-store-'));
const opened: { close(): Promise<void> }[] = [];
let homeCount = 0;
afterEach(closeAll);
afterAll(() => fs.rmSync(root, { recursive: true }));

/** A path where nothing is yet. */
export function newHome(): string {
  return path.join(root, `home-${homeCount++}`);
}

/** Names of base models. Nothing loads them. */
const BASES = {
  a: 'onpolicy-tiny',
  b: 'onpolicy-tiny',
  base: 'onpolicy-tiny',
  './base.gguf': 'onpolicy-tiny',
  './tiny.gguf': 'onpolicy-tiny',
};

/** Opens a home folder. */
export async function open(home = newHome(), options: RuntimeOptions = {}): Promise<TestHome> {
  const problems: string[] = [];
  const runtime = await createRuntime({ home, models: BASES, ...options });
  const shared = openStore(home, { onProblem: (problem) => problems.push(problem) });
  opened.push(runtime, shared);
  return { runtime, store: shared.store, home, problems };
}

/** Closes what is open, as the end of a process would. */
export async function closeAll(): Promise<void> {
  for (const one of opened.splice(0)) await one.close();
}

/** Leaves a checkpoint per reward, as training does. */
export async function addSteps(store: Store, modelId: string, rewards: readonly number[]): Promise<void> {
  const folder = store.checkpointsFolder(modelId);
  let step = (await listSteps(folder)).at(-1) ?? 0;
  for (const reward of rewards) {
    step++;
    const id = store.newCheckpointId(modelId, step);
    const facts = { id, step, metrics: { 'train/reward': reward }, trajectory_hash: '' };
    await writeStep(folder, fakeTrainer(), facts);
  }
}

/** The code of the error that a piece of work ends with. */
export function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'it worked',
    (error: { code: string }) => error.code,
  );
}

/** Returns the path of the first fault in the error of some work. */
export function faultOf(work: Promise<unknown>): Promise<string[] | undefined> {
  return work.then(
    () => ['it worked'],
    (error: { detail?: { loc: string[] }[] }) => error.detail?.[0]?.loc,
  );
}
