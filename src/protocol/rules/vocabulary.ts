/** Token ids of a request against the size of the model's vocabulary. */
import type { ErrorDetail } from '../../errors.ts';
import { fault, itemFaults } from '../faults.ts';

/** The fields that name token ids, or count tokens of the vocabulary. */
export type VocabularyFields = {
  readonly stop_token_ids?: readonly number[] | null | undefined;
  readonly allowed_token_ids?: readonly number[] | null | undefined;
  readonly top_logprobs?: number | null | undefined;
  readonly prompt_logprobs?: number | null | undefined;
};

/** The ids of a list that the vocabulary does not have. */
export function tokenIdFaults(
  loc: readonly string[],
  ids: readonly number[],
  vocabSize: number,
): ErrorDetail[] {
  return itemFaults(
    ids,
    (id) => id >= vocabSize,
    (id, i) => idFault([...loc, String(i)], id, vocabSize),
  );
}

function idFault(loc: readonly string[], id: number, vocabSize: number): ErrorDetail {
  const expected = `a token id below ${vocabSize}, the size of the vocabulary`;
  return fault(loc, 'range', expected, id, { maximum: vocabSize - 1 });
}

/** Finds ids that the vocabulary does not have. `biased`: the ids of `logit_bias`. */
export function vocabularyFaults(
  request: VocabularyFields,
  biased: Iterable<number>,
  vocabSize: number,
): ErrorDetail[] {
  let faults: ErrorDetail[] = [];
  for (const id of biased)
    if (id >= vocabSize) faults.push(idFault(['logit_bias', String(id)], id, vocabSize));
  for (const field of ['stop_token_ids', 'allowed_token_ids'] as const)
    faults = faults.concat(tokenIdFaults([field], request[field] ?? [], vocabSize));
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
