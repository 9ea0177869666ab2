/** A model's folder <-> the record of its run: machine and settings. */
import os from 'node:os';
import path from 'node:path';
import { packageVersion, replaceFile } from '../../common/index.ts';
import type { RunRecord } from '../../protocol/index.ts';
import { FORMAT, type Home, readRecord } from './home.ts';

/** The record of a new run on this machine. */
export function newRunRecord(): RunRecord {
  return {
    format: FORMAT,
    created: Math.floor(Date.now() / 1000),
    system: {
      onpolicy: packageVersion(),
      node: process.versions.node,
      platform: process.platform,
      arch: process.arch,
      cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
      cores: os.availableParallelism(),
      memory_bytes: os.totalmem(),
    },
    config: {},
  };
}

/** The record of a model's run; a new one if its file is missing or damaged. */
export async function readRunRecord(home: Home, modelFolder: string): Promise<RunRecord> {
  return (await readRecord<RunRecord>(home, runFile(modelFolder))) ?? newRunRecord();
}

/** Stores the settings of a new job. */
export async function saveConfig(
  home: Home,
  modelFolder: string,
  config: Readonly<Record<string, unknown>>,
): Promise<void> {
  const run = { ...(await readRunRecord(home, modelFolder)), config };
  await replaceFile(runFile(modelFolder), `${JSON.stringify(run, null, 2)}\n`);
}

function runFile(modelFolder: string): string {
  return path.join(modelFolder, 'run.json');
}
