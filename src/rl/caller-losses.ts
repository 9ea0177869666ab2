/** Rows and settings of a caller -> losses, after checks: one row on this thread, or many on all cores. */
import { availableParallelism } from 'node:os';
import { OnpolicyError } from '../errors.ts';
import {
  checkArguments,
  fault,
  type PolicyLossInputs,
  type PreferenceLossInputs,
  throwFaults,
} from '../protocol/index.ts';
import { readColumn } from './columns.ts';
import { type PolicyLoss, rowLoss, toPolicyLoss } from './loss.ts';
import { type LossPool, openLossPool } from './loss-pool.ts';
import { rowPreferenceLoss } from './preference-loss.ts';
import { type ExperimentalConfig, resolveSettings } from './settings.ts';

/** Computes the loss of one packed row under `experimental_config`. */
export function policyLoss(
  inputs: PolicyLossInputs,
  experimentalConfig?: ExperimentalConfig | null,
): PolicyLoss {
  checkArguments('PolicyLossInputs', inputs);
  return toPolicyLoss(rowLoss(inputs, resolveSettings(experimentalConfig)));
}

/** The loss selected by `preference_loss` of the settings, averaged over pairs or answers. */
export function preferenceLoss(
  inputs: PreferenceLossInputs,
  experimentalConfig: ExperimentalConfig,
): PolicyLoss {
  checkArguments('PreferenceLossInputs', inputs);
  const settings = resolveSettings(experimentalConfig);
  if (settings.preference_loss === null)
    throwFaults([
      fault(['preference_loss'], 'missing', '"dpo" or "kto"', experimentalConfig?.preference_loss),
    ]);
  return toPolicyLoss(rowPreferenceLoss(inputs, settings));
}

/** Pool of all calls of {@link policyLosses}; the first call opens it. Idle threads end and do not keep the process alive. */
let shared: LossPool | null = null;

/**
 * `policyLoss` of many rows, on as many worker threads as there are cores. The columns may be changed as soon as this function has
 * returned.
 * @returns the losses in the order of the rows
 * @throws OnpolicyError `INVALID_REQUEST` for wrong rows or settings, with the row's index in the path
 */
export async function policyLosses(
  rows: readonly PolicyLossInputs[],
  experimentalConfig?: ExperimentalConfig | null,
): Promise<PolicyLoss[]> {
  checkArguments('PolicyLossRows', { rows });
  const settings = resolveSettings(experimentalConfig);
  if (settings.preference_loss !== null)
    throwFaults([
      fault(
        ['preference_loss'],
        'value',
        'null: `preferenceLoss` computes preferences',
        settings.preference_loss,
      ),
    ]);
  const copies = rows.map((row, i) => atRow(i, () => copyOf(row)));
  shared ??= openLossPool({ threads: availableParallelism() });
  const pool = shared;
  const losses = await Promise.all(copies.map((row, i) => atRow(i, () => pool.compute(row, settings))));
  return losses.map(toPolicyLoss);
}

/** Copies a row to memory that any thread can read. All columns have the same length. */
function copyOf(row: PolicyLossInputs): PolicyLossInputs {
  const count = readColumn('new_logprobs', row.new_logprobs).length;
  const given = Object.entries(row).filter(([, column]) => column != null);
  return Object.fromEntries(
    given.map(([name, column]) => [name, readColumn(name, column, count)]),
  ) as unknown as PolicyLossInputs;
}

/** Runs `work` and prefixes the path of errors about a column with its row. */
function atRow<T>(index: number, work: () => Promise<T>): Promise<T>;
function atRow<T>(index: number, work: () => T): T;
function atRow<T>(index: number, work: () => T | Promise<T>): T | Promise<T> {
  const rethrow = (error: unknown): never => {
    if (!(error instanceof OnpolicyError) || !error.param) throw error;
    const at = `rows.${index}.`;
    throw new OnpolicyError(error.code, `${at}${error.message}`, { param: `${at}${error.param}` });
  };
  try {
    const result = work();
    return result instanceof Promise ? result.catch(rethrow) : result;
  } catch (error) {
    return rethrow(error);
  }
}
