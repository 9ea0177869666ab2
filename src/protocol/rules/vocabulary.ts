/** Checks of token ids of a request against the size of the model's vocabulary. */
import type { ErrorDetail } from '../../errors.ts';
import { fault, itemFaults } from '../faults.ts';
import type { ValidChatRequest } from '../valid-chat-request.ts';

/** Returns faults for the ids of a list that the vocabulary does not have. */
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

/** Returns faults for ids that the vocabulary does not have, and for counts above its size. */
export function vocabularyFaults(request: ValidChatRequest, vocabSize: number): ErrorDetail[] {
  const biased = [...request.logit_bias.keys()].filter((id) => id >= vocabSize);
  const counts = (['top_logprobs', 'prompt_logprobs'] as const).filter(
    (field) => (request[field] ?? 0) > vocabSize,
  );
  const expected = `at most ${vocabSize}, the size of the vocabulary`;
  return [
    ...biased.map((id) => idFault(['logit_bias', String(id)], id, vocabSize)),
    ...tokenIdFaults(['stop_token_ids'], request.stop_token_ids ?? [], vocabSize),
    ...tokenIdFaults(['allowed_token_ids'], request.allowed_token_ids ?? [], vocabSize),
    ...tokenIdFaults(['logprob_token_ids'], request.logprob_token_ids ?? [], vocabSize),
    ...counts.map((field) => fault([field], 'range', expected, request[field], { maximum: vocabSize })),
  ];
}
