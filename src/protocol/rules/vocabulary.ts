/** Token ids of a request against the size of the model's vocabulary. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';

/** The fields that name token ids, or count tokens of the vocabulary. */
export type VocabularyFields = {
  readonly stop_token_ids?: readonly number[] | null | undefined;
  readonly allowed_token_ids?: readonly number[] | null | undefined;
  readonly top_logprobs?: number | null | undefined;
  readonly prompt_logprobs?: number | null | undefined;
};

/** Finds ids that the vocabulary does not have. `biased`: the ids of `logit_bias`. */
export function vocabularyFaults(
  request: VocabularyFields,
  biased: Iterable<number>,
  vocabSize: number,
): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  const expected = `a token id below ${vocabSize}, the size of the vocabulary`;
  const ctx = { maximum: vocabSize - 1 };
  for (const id of biased)
    if (id >= vocabSize) faults.push(fault(['logit_bias', String(id)], 'range', expected, id, ctx));
  for (const field of ['stop_token_ids', 'allowed_token_ids'] as const)
    request[field]?.forEach((id, i) => {
      if (id >= vocabSize) faults.push(fault([field, String(i)], 'range', expected, id, ctx));
    });
  for (const field of ['top_logprobs', 'prompt_logprobs'] as const) {
    const count = request[field] ?? 0;
    if (count > vocabSize)
      faults.push(
        fault([field], 'range', `at most ${vocabSize}, the size of the vocabulary`, count, {
          maximum: vocabSize,
        }),
      );
  }
  return faults;
}
