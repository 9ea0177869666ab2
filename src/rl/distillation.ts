/** Log-probabilities of sampled tokens under teacher and student -> advantages that pull the student to the teacher. Pure. */
import { type Column, readColumn } from './columns.ts';

/**
 * On-policy distillation: the advantage of a sampled token is `log teacher - log student`, whose mean is minus the reverse KL divergence
 * per token. With it `policyLoss` minimizes that divergence. NaN if a log-probability is unknown: exclude such a token by its mask.
 * @param student (tokens) under the weights that sampled
 * @param teacher (tokens) of the same tokens, for example from `prompt_logprobs` of a teacher
 */
export function distillationAdvantages(student: Column, teacher: Column): Float64Array {
  const under = readColumn('student', student);
  const wanted = readColumn('teacher', teacher, under.length);
  return wanted.map((logprob, i) => logprob - under[i]!);
}
