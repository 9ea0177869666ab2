/** The folder of a checkpoint -> what was fitted for its decisions. */
import path from 'node:path';
import { parseJson, readText } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { DecisionCalibration } from '../protocol/index.ts';

/** File of a checkpoint with its {@link DecisionCalibration}. */
export const DECISIONS_FILE = 'decisions.json';

/** Returns null if nothing was fitted for the checkpoint. Fails with `STORE_FAILED` if the file is damaged. */
export async function readDecisions(folder: string): Promise<DecisionCalibration | null> {
  const file = path.join(folder, DECISIONS_FILE);
  const text = await readText(file);
  if (text === null) return null;
  const found = parseJson(text) as DecisionCalibration | undefined;
  const noisy = Object.values(found?.with_noise ?? {}) as readonly {
    temperature?: unknown;
    noise?: unknown;
  }[];
  const temperatures = [
    ...Object.values(found?.temperatures ?? { none: null }),
    ...noisy.map(({ temperature }) => temperature),
  ];
  const areRight =
    temperatures.every((value) => typeof value === 'number' && value > 0 && Number.isFinite(value)) &&
    noisy.every(({ noise }) => typeof noise === 'number' && noise >= 0 && noise <= 1);
  if (areRight) return found!;
  throw new OnpolicyError(
    'STORE_FAILED',
    `${file} is damaged: expected temperatures above 0 and noise from 0 to 1`,
  );
}
