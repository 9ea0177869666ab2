/** Sampling fields of requests. */
import * as s from './schema.ts';

/** Maximum number of choices of a request. */
export const MAX_CHOICES = 16_384;

/** Bounds of factors and divisors of the sampler, which computes with 32-bit floats. */
const LEAST_FACTOR = 1e-37;
const LARGEST_FACTOR = 1e38;

export const sampling: NonNullable<s.Schema['properties']> = {
  temperature: s.numberOrNull(
    'Divides the logits before sampling; 0 always takes the best token. Absent: the value in the model, otherwise 1.',
    { minimum: 0, maximum: LARGEST_FACTOR, bounds: '0 or 1 with beam search' },
  ),
  top_p: s.numberOrNull(
    'Samples only from the smallest set of best tokens whose probabilities add up to this. Absent: the value in the model, otherwise 1 (off).',
    { exclusiveMinimum: 0, maximum: 1 },
  ),
  top_k: s.integerOrNull(
    'Samples only from this many best tokens; 0 and -1 turn it off. Absent: the value in the model, otherwise off.',
    { minimum: -1 },
  ),
  min_p: s.numberOrNull(
    'Samples only from tokens at least this fraction as probable as the best one. Absent: the value in the model, otherwise 0 (off).',
    { minimum: 0, maximum: 1 },
  ),
  seed: s.integerOrNull(
    'The same request with the same seed gives the same tokens; choice i uses seed + i. -1, null or absent: a new seed each time. In process also a bigint.',
    {
      minimum: -(2 ** 63),
      maximum: 2 ** 63, // 2^63 - 1 as a number
      expected: 'an integer from -9223372036854775808 to 9223372036854775807 or null',
      tsType: 'number | bigint | null',
    },
  ),
  frequency_penalty: s.numberOrNull(
    'Subtracts this from the logit of a token for each time the answer already contains it.',
    { default: 0, minimum: -2, maximum: 2 },
  ),
  presence_penalty: s.numberOrNull(
    'Subtracts this from the logit of every token that the answer already contains.',
    { default: 0, minimum: -2, maximum: 2 },
  ),
  repetition_penalty: s.numberOrNull(
    'Divides the positive and multiplies the negative logits of tokens that the prompt or the answer already contains. Absent: the value in the model, otherwise 1.',
    { minimum: LEAST_FACTOR, maximum: LARGEST_FACTOR },
  ),
  logit_bias: {
    description: 'Token id as text -> number added to its logit. Values are clamped to -100 and 100.',
    type: ['object', 'null'],
    additionalProperties: { type: 'number' },
    bounds: 'keys: ids of the vocabulary',
  },
  use_beam_search: s.flag(
    false,
    'Searches for the most probable answers instead of sampling. Refuses options that only apply to sampling.',
  ),
  length_penalty: s.number(
    'Beam search divides a score by the length to the power of this. No effect without beam search.',
    { default: 1, minimum: -50, maximum: 50 },
  ),
  allowed_token_ids: s.listOrNull(
    'Samples only these tokens. The end-of-sequence token is not added.',
    { type: 'integer', minimum: 0 },
    { minItems: 1, bounds: 'ids of the vocabulary' },
  ),
  bad_words: s.list(
    'Strings that the answer must not contain, in any tokenization. Leading white space of a string is ignored. A match that starts in the prompt does not count.',
    { type: 'string' },
    { default: [], bounds: 'no blank text' },
  ),
  logits_processors: s.listOrNull(
    'Custom steps on the logits, in this order, after the masks and before the penalties: registered names, `{ qualname, args, kwargs }` for a processor built per request, or plain functions (in process only).',
    s.ref('LogitsProcessorItem'),
    { default: [], tsType: 'readonly (string | LogitsProcessorConstructor | LogitsProcessor)[] | null' },
  ),
  inference_xargs: {
    description: 'Values for logits processors that use them.',
    type: ['object', 'null'],
    additionalProperties: {
      type: ['string', 'number', 'array'],
      items: { type: ['string', 'number'] },
    },
  },
};
