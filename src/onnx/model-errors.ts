/** Faults of a model's files, and features that are not supported -> errors about the model. */
import { errorAt, type OnpolicyError } from '../errors.ts';

/** Returns the error about a missing or damaged file. */
export function invalid(reason: string, cause?: unknown): OnpolicyError {
  return errorAt('model', 'MODEL_INVALID', reason, cause);
}

/** Returns the error about a model of another kind. */
export function unsupported(reason: string): OnpolicyError {
  return errorAt('model', 'UNSUPPORTED', reason);
}
