/** A worker's task: one packed row's columns -> its policy loss. Failures travel as data. */
import { type ErrorCode, OnpolicyError } from '../errors.ts';
import type { PolicyLossInputs, PreferenceLossInputs } from '../protocol/index.ts';
import { type PolicyLoss, rowLoss } from './loss.ts';
import { rowPreferenceLoss } from './preference-loss.ts';
import type { TrainingSettings } from './settings.ts';

/** What crosses to the worker, as a copy. */
export type LossTask = { readonly inputs: PolicyLossInputs; readonly settings: TrainingSettings };

/** What comes back. */
export type LossReply =
  | { readonly kind: 'done'; readonly loss: PolicyLoss }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string };

/** Runs one task. */
export function run({ inputs, settings }: LossTask): LossReply {
  try {
    const loss =
      settings.preference_loss === null
        ? rowLoss(inputs, settings)
        : rowPreferenceLoss(inputs as PreferenceLossInputs, settings);
    return { kind: 'done', loss };
  } catch (error) {
    const code = error instanceof OnpolicyError ? error.code : 'BACKEND_FAILED';
    return { kind: 'failed', code, message: (error as Error).message };
  }
}
