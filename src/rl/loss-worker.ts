/** A worker's task: one packed row's columns -> its policy loss. Failures travel as data; the gradient's memory moves back. */
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type ErrorCode, OnpolicyError } from '../errors.ts';
import { type PolicyLoss, type PolicyLossInputs, rowLoss } from './loss.ts';
import { type PreferenceLossInputs, rowPreferenceLoss } from './preference-loss.ts';
import type { TrainingSettings } from './settings.ts';

/** What crosses to the worker; the memory of typed columns moves with it. */
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
    const movable = {
      [transferableSymbol]: loss.grad_new_logprobs.buffer,
      [valueSymbol]: { kind: 'done', loss } satisfies LossReply,
    };
    return move(movable as never) as unknown as LossReply; // posted as its value, and its memory moves
  } catch (error) {
    const code = error instanceof OnpolicyError ? error.code : 'BACKEND_FAILED';
    return { kind: 'failed', code, message: (error as Error).message };
  }
}
