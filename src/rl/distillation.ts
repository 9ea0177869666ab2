/** Log-probabilities of sampled tokens under teacher and student -> advantages that pull the student to the teacher. Pure. */
import { OnpolicyError } from '../errors.ts';
import type { Column } from './loss.ts';

/**
 * On-policy distillation: the advantage of a sampled token is `log teacher - log student`, whose mean is minus the reverse KL divergence per
 * token. With it `policyLoss` descends that divergence. NaN where a log-probability is not known: leave such a token out by its mask.
 * @param student (tokens) under the weights that sampled
 * @param teacher (tokens) of the same tokens, for example from `prompt_logprobs` of a teacher
 */
export function distillationAdvantages(student: Column, teacher: Column): Float64Array {
  if (student.length !== teacher.length)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `teacher: expected ${student.length} entries, got ${teacher.length}`,
      { param: 'teacher' },
    );
  return Float64Array.from(student, (value, i) => (teacher[i] ?? Number.NaN) - (value ?? Number.NaN));
}
