/** A worker's task: one packed row's columns -> its policy loss. Errors are returned as data. */
import { type ErrorCode, OnpolicyError } from '../errors.ts';
import type { PolicyLossInputs, PreferenceLossInputs } from '../protocol/index.ts';
import { type RowLossParts, rowLoss } from './loss.ts';
import { rowPreferenceLoss } from './preference-loss.ts';
import type { TrainingSettings } from './settings.ts';
import type { StepTotals } from './step-totals.ts';

/** Input of the worker. Columns in shared memory are not copied. */
export type LossTask = {
  readonly inputs: PolicyLossInputs;
  readonly settings: TrainingSettings;
  /** Null if the row is the whole step. */
  readonly totals: StepTotals | null;
};

/** Output of the worker. */
export type LossReply =
  | { readonly kind: 'done'; readonly loss: RowLossParts }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      readonly message: string;
      readonly param: string | undefined;
    };

/** Runs one task. */
export function run({ inputs, settings, totals }: LossTask): LossReply {
  try {
    const loss =
      settings.preference_loss === null
        ? rowLoss(inputs, settings, totals)
        : rowPreferenceLoss(inputs as PreferenceLossInputs, settings, totals);
    return { kind: 'done', loss };
  } catch (error) {
    const { code, param } =
      error instanceof OnpolicyError ? error : { code: 'BACKEND_FAILED' as const, param: undefined };
    return { kind: 'failed', code, message: (error as Error).message, param };
  }
}
