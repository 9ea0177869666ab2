/** The door for embeddings: any input -> texts and what their vectors should be like. */
import type { Checked } from './checked.ts';
import { fault, throwFaults } from './faults.ts';
import type { EmbeddingRequest } from './generated/request-types.ts';
import type { GivenPrompt } from './text-completion.ts';
import { checkRequest, type DoorOptions } from './validate.ts';

/** A valid request. */
export type ValidEmbeddingRequest = {
  /** Null: the default model. */
  readonly model: string | null;
  /** At least one. */
  readonly inputs: readonly GivenPrompt[];
  /** Numbers of a vector; null: all that the model gives. */
  readonly dimensions: number | null;
  readonly isBase64: boolean;
  readonly normalize: boolean;
  readonly addSpecial: boolean;
  /** Tokens of a text that are kept; -1: as many as the model takes, null: all. */
  readonly truncate: number | null;
  readonly timeout_ms: number | null;
  readonly keep_alive: EmbeddingRequest['keep_alive'];
};

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkEmbeddingRequest(input: unknown, options: DoorOptions = {}): Checked<EmbeddingRequest> {
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
  if (request.truncate_prompt_tokens === 0)
    throwFaults([fault(['truncate_prompt_tokens'], 'range', '-1, an integer from 1 up, or null', 0)]);
  return request as Checked<EmbeddingRequest>;
}

/** Brings a checked request into its one form. */
export function toValidEmbedding(request: Checked<EmbeddingRequest>): ValidEmbeddingRequest {
  const { input, model, dimensions, encoding_format, normalize, add_special_tokens, truncate_prompt_tokens } =
    request;
  const isOne = typeof input === 'string' || typeof input[0] === 'number';
  return {
    model: model || null,
    inputs: isOne
      ? [{ path: 'input', content: input as string | readonly number[] }]
      : (input as readonly (string | readonly number[])[]).map((content, i) => ({
          path: `input.${i}`,
          content,
        })),
    dimensions: dimensions ?? null,
    isBase64: encoding_format === 'base64',
    normalize: normalize ?? true,
    addSpecial: add_special_tokens ?? true,
    truncate: truncate_prompt_tokens ?? null,
    timeout_ms: request.timeout_ms ?? null,
    keep_alive: request.keep_alive,
  };
}
