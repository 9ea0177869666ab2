/** Which model samples, how often, and how it draws its tokens: fields of the requests. */
import { flag, orNull, type Schema } from './schema.ts';

/** Most choices that one request may ask for. */
export const MAX_CHOICES = 16_384;

/** Numbers that the sampler multiplies and divides by have this range: it computes with 32-bit floats. */
const LEAST_FACTOR = 1e-37;
const LARGEST_FACTOR = 1e38;

/** The fields, by name. */
export const sampling: Schema['properties'] = {
  model: orNull('string', {
    description:
      'Which model answers: a registered id or name, `name@step` for a checkpoint, a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
  }),
  frequency_penalty: orNull('number', {
    description: 'Subtracts this from the logit of a token for each time the answer already contains it.',
    default: 0,
    minimum: -2,
    maximum: 2,
  }),
  presence_penalty: orNull('number', {
    description: 'Subtracts this from the logit of every token that the answer already contains.',
    default: 0,
    minimum: -2,
    maximum: 2,
  }),
  repetition_penalty: orNull('number', {
    description:
      'Divides the positive and multiplies the negative logits of tokens that the prompt or the answer already contains. Absent: the value in the model, otherwise 1.',
    minimum: LEAST_FACTOR,
    maximum: LARGEST_FACTOR,
  }),
  logit_bias: {
    description: 'Token id as text -> number added to its logit. Values are clamped to -100 and 100.',
    type: ['object', 'null'],
    additionalProperties: { type: 'number' },
    bounds: 'keys: ids of the vocabulary',
  },
  temperature: orNull('number', {
    description:
      'Divides the logits before sampling; 0 always takes the best token. Absent: the value in the model, otherwise 1.',
    minimum: 0,
    maximum: LARGEST_FACTOR,
  }),
  top_p: orNull('number', {
    description:
      'Samples only from the smallest set of best tokens whose probabilities add up to this. Absent: the value in the model, otherwise 1 (off).',
    exclusiveMinimum: 0,
    maximum: 1,
  }),
  top_k: orNull('integer', {
    description:
      'Samples only from this many best tokens; 0 and -1 turn it off. Absent: the value in the model, otherwise off.',
    minimum: -1,
  }),
  min_p: orNull('number', {
    description:
      'Samples only from tokens at least this fraction as probable as the best one. Absent: the value in the model, otherwise 0 (off).',
    minimum: 0,
    maximum: 1,
  }),
  seed: orNull('integer', {
    description:
      'The same request with the same seed gives the same tokens; choice i uses seed + i. -1, null or absent: a new seed each time. In process also a bigint.',
    minimum: -(2 ** 63),
    maximum: 2 ** 63, // 2^63 - 1 as a number
    expected: 'an integer from -9223372036854775808 to 9223372036854775807 or null',
    tsType: 'number | bigint | null',
  }),
  n: orNull('integer', {
    description: 'Number of choices; with beam search also the number of beams.',
    default: 1,
    minimum: 1,
    maximum: MAX_CHOICES,
    bounds: '1 with temperature 0',
  }),
  use_beam_search: flag(
    false,
    'Searches for the most probable answers instead of sampling. Refuses options that only apply to sampling.',
  ),
  length_penalty: {
    description:
      'Beam search divides a score by the length to the power of this. No effect without beam search.',
    type: 'number',
    default: 1,
    minimum: -50,
    maximum: 50,
  },
};
