/** Validation of embeddings: any input -> texts and the options of their vectors. */
import type { Checked } from './checked.ts';
import { fault, throwFaults } from './faults.ts';
import { fills } from './generated/fills.ts';
import type { EmbeddingRequest } from './generated/request-types.ts';
import { type GivenPrompt, toPrompts } from './text-completion.ts';
import { type Complete, checkRequest, type ValidationOptions } from './validate.ts';

/** A valid request with all defaults. `truncate_prompt_tokens` is -1 for the model's maximum, null for no truncation. */
export type ValidEmbeddingRequest = Omit<Complete['EmbeddingRequest'], 'input'> & {
  /** The texts, at least one. */
  readonly inputs: readonly GivenPrompt[];
};

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkEmbeddingRequest(
  input: unknown,
  options: ValidationOptions = {},
): Checked<EmbeddingRequest> {
  const request = checkRequest('EmbeddingRequest', input, options);
  const { input: texts } = request;
  if (typeof texts !== 'string') {
    const kind = typeof texts[0];
    const odd = (texts as readonly unknown[]).findIndex((item) => typeof item !== kind);
    if (odd > 0)
      throwFaults([
        fault(['input', String(odd)], 'conflict', 'all texts, all ids, or all lists of ids', texts[odd]),
      ]);
  }
  return request as Checked<EmbeddingRequest>;
}

/** Normalizes a checked request. */
export function toValidEmbedding(request: Checked<EmbeddingRequest>): ValidEmbeddingRequest {
  const { input, ...filled } = fills.EmbeddingRequest(request);
  return { ...filled, model: filled.model || null, inputs: toPrompts('input', input) };
}
