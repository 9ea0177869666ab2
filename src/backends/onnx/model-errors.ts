/** What is wrong with a model's files, and what of them cannot be computed with -> errors about the model. */
import { errorAt, type OnpolicyError } from '../../errors.ts';

/** A file is missing or damaged. */
export function invalid(reason: string, cause?: unknown): OnpolicyError {
  return errorAt('model', 'MODEL_INVALID', reason, cause);
}

/** A model of another kind. */
export function unsupported(reason: string): OnpolicyError {
  return errorAt('model', 'UNSUPPORTED', reason);
}
