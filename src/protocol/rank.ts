/** Validation of rankings: any input -> pairs of texts to score, or texts to label. */
import type { Checked } from './checked.ts';
import { fault, throwFaults } from './faults.ts';
import { fills } from './generated/fills.ts';
import type { ClassifyRequest, RerankRequest, ScoreRequest } from './generated/request-types.ts';
import { type Complete, checkRequest, type ValidationOptions } from './validate.ts';

/** A text and its path in the caller's request. */
export type GivenText = { readonly path: string; readonly content: string };

/** A query, and a document that is scored against it. */
export type TextPair = { readonly query: GivenText; readonly document: GivenText };

/** Fields of all these requests. `truncate_prompt_tokens` is -1 for the model's maximum, null for no truncation. */
type Common = Pick<
  Complete['ClassifyRequest'],
  'model' | 'use_activation' | 'truncate_prompt_tokens' | 'timeout_ms' | 'keep_alive'
>;

/** A valid request for scores of pairs. */
export type ValidPairs = Common & {
  /** The pairs, at least one. */
  readonly pairs: readonly TextPair[];
  readonly instruction: string | null;
};

/** A valid request for a ranking. */
export type ValidRerankRequest = ValidPairs & { readonly top: number; readonly returnsDocuments: boolean };

/** A valid request for labels. */
export type ValidClassifyRequest = Common & { readonly inputs: readonly GivenText[] };

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkScoreRequest(input: unknown, options: ValidationOptions = {}): Checked<ScoreRequest> {
  const request = checkRequest('ScoreRequest', input, options) as Checked<ScoreRequest>;
  const { text_1, text_2 } = request;
  const [first, second] = [textsOf('text_1', text_1).length, textsOf('text_2', text_2).length];
  if (first !== 1 && first !== second)
    throwFaults([fault(['text_2'], 'conflict', `${first} texts, as text_1 has`, text_2)]);
  return request;
}

/** Normalizes a checked request. */
export function toValidRerank(request: Checked<RerankRequest>): ValidRerankRequest {
  const { query, documents, top_n, return_documents, ...filled } = fills.RerankRequest(request);
  const asked = { path: 'query', content: query };
  return {
    ...filled,
    model: filled.model || null,
    pairs: documents.map((document, i) => {
      const isText = typeof document === 'string';
      const content = isText ? document : document.text;
      return { query: asked, document: { path: `documents.${i}${isText ? '' : '.text'}`, content } };
    }),
    top: top_n || documents.length,
    returnsDocuments: return_documents,
  };
}

/** Normalizes a checked request. */
export function toValidScore(request: Checked<ScoreRequest>): ValidPairs {
  const { text_1, text_2, ...filled } = fills.ScoreRequest(request);
  const first = textsOf('text_1', text_1);
  const pairs = textsOf('text_2', text_2).map((document, i) => ({ query: first[i] ?? first[0]!, document }));
  return { ...filled, model: filled.model || null, pairs };
}

/** Normalizes a checked request. */
export function toValidClassify(request: Checked<ClassifyRequest>): ValidClassifyRequest {
  const { input, ...filled } = fills.ClassifyRequest(request);
  return { ...filled, model: filled.model || null, inputs: textsOf('input', input) };
}

function textsOf(field: string, given: string | readonly string[]): GivenText[] {
  if (typeof given === 'string') return [{ path: field, content: given }];
  return given.map((content, i) => ({ path: `${field}.${i}`, content }));
}
